"""Choose the size of the vocabulary and the share of held-out text by the amount of text; name its languages."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from nmt.config.commands import HOLD_OUT, LANGUAGES, VOCABULARY
from nmt.config.data import DataConfig
from nmt.config.keys import with_values
from nmt.config.tree import Config
from nmt.data.filters import pipeline
from nmt.data.manifest import read_manifest
from nmt.data.records import TOKENIZER_TASK, Manifest, TaskRecord, collect_task
from nmt.data.sources import registry
from nmt.data.sources.file_languages import named_languages
from nmt.data.sources.source import Pair
from nmt.errors import UserError

REFERENCE = (4_000_000, 12_000)
"""Characters on both sides, and the word pieces that suited them."""
EXPONENT = 0.2
"""How the vocabulary grows with the text: ten times as much text has 1.6 times as many pieces."""
MAX_PIECES = 32_000
HELD_OUT_PAIRS = 300
"""Pairs for validation, and as many for the test: fewer tell models apart by chance only."""
LEAST_HELD_OUT, MOST_HELD_OUT = 0.01, 0.05
"""The shares of the text that are held out, whatever its size."""
MAX_PAIRS, MAX_PAIRS_OF_WORDS = 1_000_000, 100_000
"""Pairs whose characters are counted, and whose words and different characters are: more text has the largest
vocabulary, or words enough for any."""


MIN_PIECES = 8
"""The smallest vocabulary that the settings allow."""


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
    return round(min(max(LEAST_HELD_OUT, HELD_OUT_PAIRS / max(1, pairs)), MOST_HELD_OUT), 3)


def measure_text(config: Config) -> TextSize:
    """Return the size of the training text; of the smaller side, with the larger alphabet, if each has its pieces."""
    if config.tokenizer.joint:
        return _measure(f"{source} {target}" for source, target, *_ in _training_pairs(config.data))
    sides = [_measure(f"{pair[side]} " for pair in _training_pairs(config.data)) for side in (0, 1)]
    characters, words, alphabets = zip(*sides, strict=True)
    return TextSize(min(characters), min(words), max(alphabets))


def _training_pairs(data: DataConfig) -> Iterator[Pair]:
    """Yield the first training pairs that are not held out, and that the quick filters of pairs keep."""
    quick = [each for each in pipeline.filters_of(data, "train") if each.is_quick]
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


def languages_of_names(config: Config) -> dict[str, object]:
    """Return the settings of the languages that the names of the files say; none if they say none."""
    return dict(zip(LANGUAGES, named_languages(config.data) or (), strict=False))


def values_for_text(config: Config, open_names: Collection[str]) -> Mapping[str, object]:
    """Return values of settings with which the text was prepared, or which suit it, as far as they can be known.

    Commands report text that is missing, empty or damaged when they need it.

    Args:
        config: All settings.
        open_names: The settings to derive, of the languages, the size of the vocabulary and the share of held-out
            text.
    """
    values = languages_of_names(config)
    try:
        found = registry.fingerprint_if_here(config.data, "train")
        manifest = read_manifest(config.data_folder)
        collected = manifest.tasks.get(collect_task("train"))
        if collected and found in (None, collected.inputs.get("source")):
            prepared = _prepared_with(collected, manifest.tasks.get(TOKENIZER_TASK))
            is_its_text = found is not None or _train_files(manifest) == config.data.train
            values = {**values, **prepared} if is_its_text else {**prepared, **values}
        if found is not None:
            values = {name: value for name, value in values.items() if name in open_names}
            values |= _suiting(with_values(config, values), [name for name in open_names if name not in values])
    except (UserError, ValueError, TypeError):
        pass
    return {name: value for name, value in values.items() if name in open_names}


def _prepared_with(collected: TaskRecord, tokenizer: TaskRecord | None) -> dict[str, object]:
    """Return the settings with which the training text was collected, and the tokenizer trained on this text.

    The head of the manifest is of another preparation if the last one was interrupted.
    """
    languages, held_out = collected.inputs.get("languages"), collected.inputs.get("hold_out")
    known: dict[str, object] = {}
    if isinstance(languages, list):
        known |= zip(LANGUAGES, map(str, languages), strict=True)
    if isinstance(held_out, dict) and (share := held_out.get("share")):
        known[HOLD_OUT] = float(share)
    text, settings = (tokenizer.inputs.get(key) if tokenizer else None for key in ("text", "settings"))
    if isinstance(text, dict) and isinstance(settings, dict) and collected.outputs.items() <= text.items():
        known[VOCABULARY] = int(settings["vocab_size"])
    return known


def _train_files(manifest: Manifest) -> object:
    source = manifest.about.get("source")
    return source.get("train") if isinstance(source, dict) else None


def _suiting(config: Config, open_names: Collection[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    if HOLD_OUT in open_names and registry.held_out(config.data):
        whole = registry.pairs(replace(config.data, hold_out=0.0), "train")
        enough = round(HELD_OUT_PAIRS / LEAST_HELD_OUT)
        values[HOLD_OUT] = share_to_hold_out(sum(1 for _ in islice(whole, enough)))
    if VOCABULARY in open_names:
        size = measure_text(with_values(config, values))
        values |= {VOCABULARY: vocabulary_for(size)} if size.characters else {}
    return values
