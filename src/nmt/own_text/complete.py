"""Complete the settings of every command: with the values of the run once it has begun, else with those of its text."""

from collections.abc import Container
from dataclasses import replace
from itertools import chain, islice

from nmt.config.commands import DERIVED, HOLD_OUT, LANGUAGES, OF_DATA, SHAPE, VOCABULARY
from nmt.config.compose import compose
from nmt.config.data import NOT_OF_THE_TEXT
from nmt.config.keys import all_keys, value_of, with_values
from nmt.config.saved import Settings, flatten, load_config
from nmt.config.tree import Config
from nmt.data.filters import pipeline
from nmt.data.manifest import TOKENIZER_TASK, Collected, collect_task, read_manifest
from nmt.data.sources import registry
from nmt.data.sources.files import named_languages
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


def with_values_for_text(config: Config, given: Container[str], *, may_fetch: bool = False) -> Config:
    """Return the settings with the values of a run that has begun, or with what is derived before preparing the text.

    The settings and groups that the user gives keep their values. Text at an address is measured if it may be fetched.
    """
    if config.data.source != "files" and not config.own.derive:
        return config
    usual = compose([EXPERIMENT])
    if config.data.source == "files" and config.data.train == usual.data.train and "data" not in given:
        config = _with_prepared_text(_with_corpus_of_run(config, usual, given), usual, given)
    if not config.own.derive:
        return config
    config = with_values(config, {"own.keep": list(dict.fromkeys([*config.own.keep, *_given(config, usual, given)]))})
    return as_begun(config, may_fetch=may_fetch) or suited_to_text(config, may_fetch=may_fetch)


def as_begun(config: Config, *, may_fetch: bool = False) -> Config | None:
    """Return the settings with those of the run's newest checkpoint, except for what is given; None if it has none."""
    saved = _begun_with(config)
    if saved is None:
        return None
    kept = {*config.own.keep, *(["own.minutes"] if config.own.minutes else [])}
    begun = with_values(
        config, {name: value_of(saved, name) for name in ("own.derive", "own.minutes", *DERIVED) if name not in kept}
    )
    # from another text, a corpus of its own can be prepared
    return begun if saved.data.train == config.data.train else suited_to_text(begun, may_fetch=may_fetch)


def suited_to_text(config: Config, *, may_fetch: bool = False) -> Config:
    """Return the settings with values with which the text was prepared, or which suit it, as far as they can be known.

    Commands report text that is missing, empty or damaged when they need it.
    """
    of_other_model = [VOCABULARY] if config.training.uses_old_vocabulary else []
    missing = [name for name in OF_DATA if name not in (*config.own.keep, *of_other_model)]

    def take(config: Config, found: Settings) -> Config:
        taken = {name: found[name] for name in missing if name in found}
        missing[:] = [name for name in missing if name not in taken]
        return with_values(config, taken)

    try:
        here = registry.fingerprint_if_here(config.data, "train", may_fetch=may_fetch)
        config = take(config, _prepared_with(config, here))
        config = take(config, dict(zip(LANGUAGES, named_languages(config.data) or (), strict=False)))
        if here is not None and HOLD_OUT in missing and registry.held_out(config.data):
            whole = registry.pairs(replace(config.data, hold_out=0.0), "train")
            pairs = sum(1 for _ in islice(whole, round(HELD_OUT_PAIRS / MIN_HELD_OUT)))
            config = take(config, {HOLD_OUT: share_to_hold_out(pairs)})
        if here is not None and VOCABULARY in missing:
            config = take(config, {VOCABULARY: vocabulary_for(*measure_text(config))})
    except UserError:
        pass
    return config


def _with_corpus_of_run(config: Config, usual: Config, given: Container[str]) -> Config:
    """Return the settings with the corpus of a run that has begun, because another one may have other held-out text."""
    if "data.corpus" in given or config.data.corpus != usual.data.corpus:
        return config
    saved = _begun_with(config)
    if saved is None or saved.data.source != "files":
        return config
    return with_values(config, {"data.corpus": saved.data.corpus})


def _begun_with(config: Config) -> Config | None:
    """Return the settings of the run's newest checkpoint; None if it has none."""
    newest = RunLayout(config.run_folder).newest_checkpoint()
    return None if newest is None else load_config(newest / SETTINGS)


def _with_prepared_text(config: Config, usual: Config, given: Container[str]) -> Config:
    """Return the settings with those of the prepared corpus, because nothing names the training text."""
    recorded = flatten(read_manifest(config.data_folder).settings)
    names = recorded.keys() & all_keys().keys() - {*(f"data.{name}" for name in NOT_OF_THE_TEXT), *DERIVED}
    is_open = {name for name in names if name not in given and value_of(config, name) == value_of(usual, name)}
    return with_values(config, {name: recorded[name] for name in is_open})


def _prepared_with(config: Config, here: object) -> Settings:
    """Return the settings with which the text was prepared, in full or in part; none if it was not.

    `here` is the fingerprint of the text; if it is None, the text is not here, and the names of its files decide.
    """
    manifest = read_manifest(config.data_folder)
    settings, collected = flatten(manifest.settings), manifest.tasks.get(collect_task("train"))
    if TOKENIZER_TASK not in manifest.tasks:
        settings.pop(VOCABULARY, None)  # it may have been impossible
    is_this = collected and here in (None, collected.inputs.get("source"))
    return settings if is_this and settings.get("data.train") == config.data.train else {}


def _given(config: Config, usual: Config, given: Container[str]) -> list[str]:
    """Return the derived settings that the user gives: by name, by their group, or in a file of settings."""
    found = [
        name
        for name in DERIVED
        if name in given or name.partition(".")[0] in given or value_of(config, name) != value_of(usual, name)
    ]
    has_shape = any(name in found for name in SHAPE) or config.model.encoder_layers or config.model.decoder_layers
    return [*found, *(SHAPE if has_shape else ())]


def vocabulary_for(characters: int, words: int, alphabet: int) -> int:
    """Return the number of word pieces for a text, in hundreds if there are a thousand or more.

    Half of the different words is a number that byte-pair encoding always finds; all characters must be pieces.
    """
    reference, pieces = REFERENCE
    wanted = min(MAX_PIECES, pieces * (characters / reference) ** EXPONENT, words / 2)
    wanted = max(wanted, 2 * alphabet, MIN_PIECES)
    return int(wanted) if wanted < 1000 else 100 * round(wanted / 100)


def share_to_hold_out(pairs: int) -> float:
    """Return the share of a text, given its number of pairs, that is held out for validation, and again for testing."""
    return round(min(max(MIN_HELD_OUT, HELD_OUT_PAIRS / max(1, pairs)), MAX_HELD_OUT), 3)


def measure_text(config: Config) -> tuple[int, int, int]:
    """Return the characters, different words and different characters of the training text that quick filters keep.

    If each side has pieces of its own, the numbers are those of the smaller side, except for the larger alphabet.
    """
    data, sides = config.data, 1 if config.tokenizer.joint else 2
    quick = [name for name in pipeline.filters_of(data, "train") if name in pipeline.QUICK]
    kept = pipeline.apply(quick, data, islice(registry.pairs(data, "train"), MAX_PAIRS), Collected())
    characters, words, alphabets = [0] * sides, [set[str]() for _ in range(sides)], [set[str]() for _ in range(sides)]
    for number, (source, target, *_) in enumerate(chain.from_iterable(kept)):
        for side, text in enumerate([f"{source} {target}"] if sides == 1 else [source, target]):
            characters[side] += len(text)
            if number < MAX_PAIRS_OF_WORDS:
                words[side].update(text.split())
                alphabets[side].update(text)
    return min(characters), min(map(len, words)), max(map(len, alphabets))
