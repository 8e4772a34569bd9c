"""The embedded demo corpus: English and German sentences that a grammar generates, or English ones with their trees.

Some combinations are held out of the training text: of an adjective and a noun, of a verb and its object, and of a verb
and its position and form in German. A hash of its spelling decides about each combination, so the choice depends on
neither the seed nor the interpreter.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from random import Random

from nmt.config.data import DataConfig, is_text
from nmt.data.sources.source import Fingerprint, Pair, Source
from nmt.demo.author import Author
from nmt.demo.grammar import Combination, Sentence
from nmt.errors import UserError
from nmt.parsing.linearise import tree_pair
from nmt.text.alignments import GoldAlignment

VERSION = 2
"""The version of the text: raise it with each change of the grammar or its words, so that text is prepared again."""
SEED = 1
"""The seed of the text, so that runs of several seeds have the same."""
SIZES = {"train": 20_000, "valid": 500, "test": 1000}
"""Pairs per split."""
MIN_WORDS, MAX_WORDS = 3, 25
"""Words of a sentence in each language."""
COMBINATIONS_PER_HELD_OUT = 10


def draw(seed: int, train: int, valid: int, test: int) -> dict[str, list[Sentence]]:
    """Draw distinct sentences per split; `unseen` is the half of test with combinations that training lacks."""
    stream = _distinct(seed)

    def take(count: int, unseen: bool = False) -> list[Sentence]:
        return list(islice((each for each in stream if any(map(held_out, each.combinations)) is unseen), count))

    drawn = {"train": take(train), "valid": take(valid), "unseen": take(test // 2, unseen=True)}
    drawn["test"] = take(test - test // 2) + drawn["unseen"]
    Random(seed).shuffle(drawn["test"])
    return drawn


def _distinct(seed: int) -> Iterator[Sentence]:
    """Yield distinct sentences without end."""
    author, seen = Author(Random(seed)), set[str]()
    while True:
        sentence = author.sentence()
        pair = sentence.pair
        if seen.isdisjoint(pair) and all(MIN_WORDS <= len(side.split()) <= MAX_WORDS for side in pair):
            seen.update(pair)
            yield sentence


def held_out(combination: Combination) -> bool:
    """Return whether a combination is kept out of the training text."""
    digest = sha256(" ".join(combination).encode()).digest()
    return int.from_bytes(digest[:4], "big") % COMBINATIONS_PER_HELD_OUT == 0


_draw = lru_cache(maxsize=1)(draw)


def fingerprint(config: DataConfig, _: str) -> Fingerprint:
    """Identify the text by its version, seed and sizes."""
    return {"demo": VERSION, "seed": SEED, "sizes": SIZES, "trees": _tags_of_trees(config)}


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the generated pairs of a split."""
    source, target = config.languages
    tags = _tags_of_trees(config)
    if not ({source, target} == {"en", "de"} or (source == "en" and tags)):
        raise UserError(f"the demo corpus is English and German, or English and trees, not {source} and {target}.")
    drawn = _draw(SEED, **SIZES)[split]
    if tags:
        return (tree_pair(each.tree(), keep_tags=tags == "keep") for each in drawn)
    return (each.pair if source == "en" else each.pair[::-1] for each in drawn)


def _tags_of_trees(config: DataConfig) -> str | None:
    """Return how the trees of the target side show tags; None if the target side is text."""
    return None if is_text(config.target_lang) else config.pos_tags


def alignments(config: DataConfig, split: str) -> Iterator[GoldAlignment]:
    """Yield the true word alignments of a split."""
    found = (each.alignment() for each in _draw(SEED, **SIZES)[split])
    return (each if config.source_lang == "en" else each.reversed() for each in found)


SOURCE = Source(fingerprint, pairs, alignments=alignments, splits=("test", "unseen", "valid", "train"))
