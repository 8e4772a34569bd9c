"""Complete the settings of every command: with the values of the run once it has begun, else with those of its text."""

from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from nmt.config.commands import DERIVED, HOLD_OUT, LANGUAGES, OF_DATA, SHAPE, VOCABULARY
from nmt.config.compose import compose
from nmt.config.data import NOT_OF_THE_TEXT, DataConfig, is_text
from nmt.config.keys import all_keys, value_of, with_values
from nmt.config.saved import flatten, from_yaml, read_saved
from nmt.config.tree import Config
from nmt.data.filters import pipeline
from nmt.data.manifest import TOKENIZER_TASK, collect_task, read_manifest
from nmt.data.sources import registry
from nmt.data.sources.files import named_languages
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.runs.layout import SETTINGS, RunLayout

EXPERIMENT = "experiment=own"
"""The settings that are replaced; a value that differs from theirs was given."""
REFERENCE, EXPONENT = (4_000_000, 12_000), 0.2
"""Characters on both sides with the word pieces that suited them, and how the vocabulary grows: ten times as much text
has 1.6 times as many pieces."""
MIN_PIECES, MAX_PIECES = 8, 32_000
"""The smallest vocabulary that the settings allow, and the largest one that is derived."""
HELD_OUT_PAIRS, MIN_HELD_OUT, MAX_HELD_OUT = 300, 0.01, 0.05
"""Pairs for validation, and as many for the test, because fewer tell models apart by chance only; and the limits of
their shares of the text."""
MAX_PAIRS, MAX_PAIRS_OF_WORDS = 1_000_000, 100_000
"""Pairs whose characters are counted, and whose words and different characters are: more text has the largest
vocabulary, or words enough for any."""


def with_values_for_text(config: Config, given: Container[str]) -> Config:
    """Return the settings with the values of a run that has begun, or with what is derived before preparing the text.

    The settings and groups that the user gives keep their values.
    """
    config = _with_prepared_text(config, given)
    if not config.own.derive:
        return config
    config = with_values(config, {"own.keep": list(dict.fromkeys([*config.own.keep, *_given(config, given)]))})
    return as_begun(config) or with_values(config, values_for_text(config, derivable_from_text(config)))


def as_begun(config: Config) -> Config | None:
    """Return the settings with those of the run's newest checkpoint, except for what is given; None if it has none."""
    newest = RunLayout(config.run_folder).newest_checkpoint()
    if newest is None:
        return None
    saved = read_saved(newest / SETTINGS, from_yaml)
    # from another text, a corpus of its own can be prepared
    of_text = derivable_from_text(config) if saved.data.train != config.data.train else []
    others = {*config.own.keep, *of_text, *(["own.minutes"] if config.own.minutes else [])}
    values = {name: value_of(saved, name) for name in ("own.derive", "own.minutes", *DERIVED) if name not in others}
    return with_values(config, {**values, **values_for_text(config, of_text)})


def derivable_from_text(config: Config) -> list[str]:
    """Return the settings that are derived before the text of a run is prepared."""
    names = LANGUAGES if not is_text(config.data.target_lang) else OF_DATA
    has_vocabulary = bool(config.training.init_from)  # that of the model to begin from
    return [name for name in names if name not in config.own.keep and not (has_vocabulary and name == VOCABULARY)]


def _with_prepared_text(config: Config, given: Container[str]) -> Config:
    """Return the settings with those of the prepared corpus, if nothing says which files have the training text."""
    if config.data.source != "files" or "data" in given or "data.train" in given:
        return config
    usual, recorded = compose([EXPERIMENT]), flatten(read_manifest(config.data_folder).settings)
    if config.data.train != usual.data.train:  # a file of settings names them
        return config
    names = recorded.keys() & all_keys().keys() - {*(f"data.{name}" for name in NOT_OF_THE_TEXT), *DERIVED}
    is_open = {name for name in names if name not in given and value_of(config, name) == value_of(usual, name)}
    return with_values(config, {name: recorded[name] for name in is_open})


def _given(config: Config, given: Container[str]) -> list[str]:
    """Return the derived settings that the user gives: by name, by their group, or in a file of settings."""
    usual = compose([EXPERIMENT])
    found = [
        name
        for name in DERIVED
        if name in given or name.partition(".")[0] in given or value_of(config, name) != value_of(usual, name)
    ]
    has_shape = any(name in found for name in SHAPE) or config.model.encoder_layers or config.model.decoder_layers
    return [*found, *(SHAPE if has_shape else ())]


def values_for_text(config: Config, names: Collection[str]) -> dict[str, object]:
    """Return values of some settings with which the text was prepared, or which suit it, as far as they can be known.

    Commands report text that is missing, empty or damaged when they need it.
    """
    if not names:
        return {}
    found: dict[str, object] = dict(zip(LANGUAGES, named_languages(config.data) or (), strict=False))

    def known() -> dict[str, object]:
        return {name: value for name, value in found.items() if name in names}

    try:
        here = registry.fingerprint_if_here(config.data, "train")
        found |= _prepared_with(config, here)
        if here is not None and HOLD_OUT in names and HOLD_OUT not in found and registry.held_out(config.data):
            whole = registry.pairs(replace(with_values(config, known()).data, hold_out=0.0), "train")
            found[HOLD_OUT] = share_to_hold_out(sum(1 for _ in islice(whole, round(HELD_OUT_PAIRS / MIN_HELD_OUT))))
        if here is not None and VOCABULARY in names and VOCABULARY not in found:
            found[VOCABULARY] = vocabulary_for(measure_text(with_values(config, known())))
    except (UserError, LookupError):  # LookupError: the corpus is of an older version
        pass
    return known()


def _prepared_with(config: Config, here: object) -> dict[str, object]:
    """Return the settings with which the text was collected, and the tokenizer trained on it; none if they were not.

    They are those of the tasks, because the settings of the manifest may be of a preparation that was interrupted.
    `here` is the fingerprint of the text; if it is None, the text is not here, and the names of its files decide.
    """
    manifest = read_manifest(config.data_folder)
    collected, tokenizer = (manifest.tasks.get(name) for name in (collect_task("train"), TOKENIZER_TASK))
    same_files = flatten(manifest.settings).get("data.train") == config.data.train
    if collected is None or not (same_files if here is None else here == collected.inputs.get("source")):
        return {}
    inputs: Any = collected.inputs
    trained: Any = tokenizer.inputs if tokenizer else {}
    found: dict[str, object] = dict(zip(LANGUAGES, inputs["languages"], strict=True))
    if divided := inputs.get("hold_out"):
        found[HOLD_OUT] = divided["share"]
    if trained.get("text") and collected.outputs.items() <= trained["text"].items():
        found[VOCABULARY] = trained["settings"]["vocab_size"]
    return found


class TextSize(NamedTuple):
    """What the vocabulary of a text depends on."""

    characters: int
    words: int
    """Different words, separated by white space."""
    alphabet: int
    """Different characters."""


def vocabulary_for(size: TextSize) -> int:
    """Return the number of word pieces for a text, in hundreds if there are a thousand or more.

    Half of the different words is a number that byte-pair encoding always finds; all characters must be pieces.
    """
    characters, pieces = REFERENCE
    wanted = min(MAX_PIECES, pieces * (size.characters / characters) ** EXPONENT, size.words / 2)
    wanted = max(wanted, 2 * size.alphabet, MIN_PIECES)
    return int(wanted) if wanted < 1000 else 100 * round(wanted / 100)


def share_to_hold_out(pairs: int) -> float:
    """Return the share of a text, given its number of pairs, that is held out for validation, and again for testing."""
    return round(min(max(MIN_HELD_OUT, HELD_OUT_PAIRS / max(1, pairs)), MAX_HELD_OUT), 3)


def measure_text(config: Config) -> TextSize:
    """Return the size of the training text; of the smaller side, with the larger alphabet, if each has its pieces."""
    if config.tokenizer.joint:
        return _measure(f"{source} {target}" for source, target, *_ in _training_pairs(config.data))
    sides = [_measure(f"{pair[side]} " for pair in _training_pairs(config.data)) for side in (0, 1)]
    characters, words, alphabets = zip(*sides, strict=True)
    return TextSize(min(characters), min(words), max(alphabets))


def _training_pairs(data: DataConfig) -> Iterator[Pair]:
    """Yield the first training pairs that are not held out, and that the quick filters of pairs keep."""
    quick = [name for name in pipeline.filters_of(data, "train") if name in pipeline.QUICK]
    pairs = islice(registry.pairs(data, "train"), MAX_PAIRS)
    chunks = (chunk for chunk, _ in pipeline.read_chunks(pairs))
    return chain.from_iterable(pipeline.apply(quick, data, chunks, {}))


def _measure(texts: Iterable[str]) -> TextSize:
    characters, words, alphabet = 0, set[str](), set[str]()
    for number, text in enumerate(texts):
        characters += len(text)
        if number < MAX_PAIRS_OF_WORDS:
            words.update(text.split())
            alphabet.update(text)
    return TextSize(characters, len(words), len(alphabet))
