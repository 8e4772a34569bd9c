"""Development and test text that is also in the training text: count it, or drop the training pairs that have it.

Sentences of a language are compared wherever they stand, by 64-bit hashes of their letters (`nmt.text.plain`), and
pairs of two languages in both directions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nmt.config.data import SIDE, DataConfig, is_text
from nmt.data.corpora import CorpusSplit, untagged
from nmt.data.manifest import Overlap
from nmt.data.sources.source import Languages
from nmt.text.lines import read_lines
from nmt.text.plain import sentence_digest

HeldOut = set[bytes]
"""What filters know of the development and test text: the keys of all sentences and pairs."""
CHUNK_PAIRS = 10_000
"""Pairs between two reports of progress."""
Keeps = Callable[[str, str], bool]
"""Returns whether a training pair is kept, given its source and its target."""


def keys_of(sides: Languages, source: str, target: str) -> tuple[bytes, bytes, bytes]:
    """Return what identifies a source sentence, a target sentence and their pair."""
    first, second = sentence_digest(source) + sides[0].encode(), sentence_digest(target) + sides[1].encode()
    return first, second, min(first, second) + b" " + max(first, second)


def read_splits(folder: Path, splits: Iterable[CorpusSplit]) -> Iterator[tuple[Languages, str, str]]:
    """Yield the languages and both sides of all pairs of prepared splits, without the tags of their corpora."""
    for split in splits:
        sources, targets = (read_lines(folder / name) for name in split.texts[:2])
        for source, target in zip(sources, targets, strict=True):
            yield split.data.languages, untagged(source, split.data.tag), target


def count_overlap(folder: Path, splits: Sequence[CorpusSplit], advance: Callable[[int], None]) -> dict[str, Overlap]:
    """Return for each other split how many of its sentences and pairs the training text holds.

    Only keys of the other splits are in memory. `advance` takes numbers of training pairs that are done.
    """
    others = [split for split in splits if not split.is_training_text]
    keys = {split.name: [keys_of(*pair) for pair in read_splits(folder, [split])] for split in others}
    known = {key for found in keys.values() for pair in found for key in pair}
    seen = set[bytes]()
    training_text = read_splits(folder, [split for split in splits if split.is_training_text])
    for number, pair in enumerate(training_text, 1):
        seen.update(known.intersection(keys_of(*pair)))
        if number % CHUNK_PAIRS == 0:
            advance(CHUNK_PAIRS)
    return {
        name: Overlap(len(found), *(sum(key in seen for key in kind) for kind in zip(*found, strict=True)))
        for name, found in keys.items()
    }


def learn(text: Iterable[tuple[Languages, str, str]]) -> HeldOut:
    """Return what the filter must know of the development and test text."""
    return {key for pair in text for key in keys_of(*pair)}


def sentences_differ(data: DataConfig, held_out: HeldOut) -> Keeps:
    """Return a function that drops pairs with whole sentences of development or test text."""
    sides = data.languages
    # different sentences often have the same tree
    chosen = slice(2, 3) if data.drop_overlap != SIDE else slice(0, 2) if is_text(data.target_lang) else slice(0, 1)
    return lambda source, target: held_out.isdisjoint(keys_of(sides, source, target)[chosen])
