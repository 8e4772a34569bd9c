"""Count development and test sentences that are also in the training text."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.corpora import CorpusSplit
from nmt.data.layout import CorpusLayout
from nmt.data.sources.source import Languages
from nmt.data.tags import untagged
from nmt.text.lines import read_lines
from nmt.text.plain import Hashes, pair_hashes, sentence_hashes

CHUNK_PAIRS = 100_000
"""Pairs compared together."""


class HeldOutPair(NamedTuple):
    """A pair of a development or test set."""

    languages: Languages
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Sentences of a split that the training text also holds, by side and as a pair."""

    sentences: int
    source: int
    target: int
    pair: int


Key = str | Languages
"""What hashes are of: the sentences of a language, or the pairs of two languages in alphabetical order."""


def count_overlap(folder: Path, splits: Sequence[CorpusSplit], advance: Callable[[int], None]) -> dict[str, Overlap]:
    """Return for each other split how many of its sentences the training text holds: by side, and as a pair.

    A sentence is compared with those of its language on both sides of the training text, and a pair with those of its
    two languages in both directions. Sentences are compared by 64-bit hashes of their letters, without tags. Only the
    hashes of the splits are in memory; the training text is read as a stream.

    Args:
        folder: The folder of the corpus.
        splits: All splits of all corpora.
        advance: Called with the number of training pairs read since the last call.
    """
    hashes_of = {
        split.name: [np.concatenate(each) for each in zip(*_hashes(folder, split), strict=True)]
        for split in splits
        if not split.is_training_text
    }
    keys_of: dict[str, tuple[Key, ...]] = {split.name: _keys(split) for split in splits}
    known: defaultdict[Key, list[Hashes]] = defaultdict(list)
    for name, kinds in hashes_of.items():
        for key, hashes in zip(keys_of[name], kinds, strict=True):
            known[key].append(hashes)
    seen = {key: _Seen(np.concatenate(each)) for key, each in known.items()}
    for split in (each for each in splits if each.is_training_text):
        for chunk in _hashes(folder, split):
            for key, hashes in zip(keys_of[split.name], chunk, strict=True):
                if key in seen:
                    seen[key].mark(hashes)
            advance(len(chunk[0]))
    return {
        name: Overlap(
            len(kinds[0]), *(seen[key].count(hashes) for key, hashes in zip(keys_of[name], kinds, strict=True))
        )
        for name, kinds in hashes_of.items()
    }


def _keys(split: CorpusSplit) -> tuple[str, str, Languages]:
    """Return the keys of the hashes that `_hashes` yields."""
    source, target = split.languages
    return source, target, (min(source, target), max(source, target))


def together(sides: Languages, source: Hashes, target: Hashes) -> tuple[Languages, Hashes]:
    """Return the languages in alphabetical order, and hashes of pairs, which are the same in both directions."""
    (first, left), (second, right) = sorted(((sides[0], source), (sides[1], target)), key=lambda each: each[0])
    return (first, second), pair_hashes(left, right)


class _Seen:
    """Remembers which of a set of hashes have been seen."""

    def __init__(self, hashes: Hashes) -> None:
        self._known = np.unique(hashes)
        self._seen = np.zeros(len(self._known), dtype=bool)

    def mark(self, hashes: Hashes) -> None:
        """Mark the hashes that are in the set as seen."""
        indices = self._indices(hashes)
        self._seen[indices[self._known[indices] == hashes]] = True

    def count(self, hashes: Hashes) -> int:
        """Return how many of these hashes, all of them in the set, have been seen."""
        return int(self._seen[self._indices(hashes)].sum())

    def _indices(self, hashes: Hashes) -> npt.NDArray[np.intp]:
        return np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)


def _hashes(folder: Path, split: CorpusSplit) -> Iterator[tuple[Hashes, Hashes, Hashes]]:
    """Yield the hashes of a split's source sentences, target sentences and pairs, chunk by chunk."""
    sources, targets = map(read_lines, CorpusLayout(folder).texts(split.name, split.languages))
    while True:
        first = sentence_hashes(untagged(line, split.data.tag) for line in islice(sources, CHUNK_PAIRS))
        second = sentence_hashes(islice(targets, CHUNK_PAIRS))
        if not len(first):
            return
        yield first, second, together(split.languages, first, second)[1]
