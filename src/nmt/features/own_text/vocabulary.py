"""Choose the size of the vocabulary from the amount of text."""

from itertools import islice
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.data.manifest import read_manifest
from nmt.data.records import collect_task
from nmt.data.sources import registry
from nmt.errors import UserError

REFERENCE = (4_000_000, 8000)
"""Characters on both sides, and the word pieces that suited them."""
EXPONENT = 0.4
"""How the vocabulary grows with the text: ten times as much text has 2.5 times as many pieces."""
MAX_PIECES = 32_000
MAX_PAIRS, MAX_PAIRS_OF_WORDS = 1_000_000, 100_000
"""Pairs whose characters are counted, and whose words and different characters are: more text has the largest
vocabulary, or words enough for any."""


class TextSize(NamedTuple):
    """What the vocabulary of a text depends on, both sides together."""

    characters: int
    words: int
    """Different words, separated by white space."""
    alphabet: int
    """Different characters."""


def vocabulary_for(size: TextSize) -> int:
    """Return the number of word pieces for a text, in hundreds if there are so many.

    Half of the different words is a number that byte-pair encoding always finds; all characters must be pieces.
    """
    characters, pieces = REFERENCE
    wanted = min(MAX_PIECES, pieces * (size.characters / characters) ** EXPONENT, size.words / 2)
    wanted = max(wanted, 2 * size.alphabet)
    return int(wanted) if wanted < 1000 else 100 * round(wanted / 100)


def measure_text(config: Config) -> TextSize:
    """Return the size of the training text, without the pairs that are held out."""
    characters, words, alphabet = 0, set[str](), set[str]()
    for number, (source, target, *_) in enumerate(islice(registry.pairs(config.data, "train"), MAX_PAIRS)):
        text = f"{source} {target}"
        characters += len(text)
        if number < MAX_PAIRS_OF_WORDS:
            words.update(text.split())
            alphabet.update(text)
    return TextSize(characters, len(words), len(alphabet))


def vocabulary_of(config: Config) -> int:
    """Return the vocabulary that the text was prepared with, or the one that suits it; 0 if neither can be known.

    Commands report text that is missing, empty or damaged when they need it.
    """
    try:
        found = registry.fingerprint_if_here(config.data, "train")
        manifest = read_manifest(config.data_folder)
        collected = manifest.tasks.get(collect_task("train"))
        before = manifest.settings.get("tokenizer")
        if collected and isinstance(before, dict) and found in (None, collected.inputs.get("source")):
            return int(before.get("vocab_size", 0))
        size = measure_text(config) if found is not None else None
    except (UserError, ValueError, TypeError):
        return 0
    return vocabulary_for(size) if size is not None and size.characters else 0
