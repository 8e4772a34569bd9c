"""How many development and test sentences also stand in the training text."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.sources.source import Languages

Hashes = npt.NDArray[np.uint64]
CHUNK = 100_000
"""Pairs compared at once."""
KINDS = ("source", "target", "pair")
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that mixes the bits of a source sentence's hash before the target's is added."""


def count_overlap(
    folder: Path, splits: Sequence[str], languages: Languages, advance: Callable[[int], None]
) -> dict[str, dict[str, int]]:
    """Count, for each split, its sentences that training text holds: on the source side, the target side, as a pair.

    Sentences are compared by 64-bit hashes, without the spaces at their ends. Only those of the splits are kept in
    memory; the training text is read as a stream.
    """
    watched = {
        split: [np.concatenate(each) for each in zip(*_hashes(folder, split, languages), strict=True)]
        for split in splits
    }
    seen = [_Seen(np.concatenate(each)) for each in zip(*watched.values(), strict=True)]
    for chunk in _hashes(folder, "train", languages):
        for known, hashes in zip(seen, chunk, strict=True):
            known.look(hashes)
        advance(len(chunk[0]))
    counts = {}
    for split, kinds in watched.items():
        found = [known.count(hashes) for known, hashes in zip(seen, kinds, strict=True)]
        counts[split] = {"sentences": len(kinds[0]), **dict(zip(KINDS, found, strict=True))}
    return counts


class _Seen:
    """Remembers which of some hashes have been seen."""

    def __init__(self, hashes: Hashes) -> None:
        self._known = np.unique(hashes)
        self._seen = np.zeros(len(self._known), dtype=bool)

    def look(self, hashes: Hashes) -> None:
        """Take note of those that are known."""
        places = self._places(hashes)
        self._seen[places[self._known[places] == hashes]] = True

    def count(self, hashes: Hashes) -> int:
        """Return how many of these, all of them known, have been seen."""
        return int(self._seen[self._places(hashes)].sum())

    def _places(self, hashes: Hashes) -> npt.NDArray[np.intp]:
        return np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)


def _hashes(folder: Path, split: str, languages: Languages) -> Iterator[tuple[Hashes, Hashes, Hashes]]:
    """Yield the hashes of a split's source sentences, target sentences and pairs, chunk by chunk."""
    source, target = (folder / f"{split}.{language}" for language in languages)
    with source.open("rb") as left, target.open("rb") as right:
        while True:
            first, second = (
                np.fromiter(map(hash, map(bytes.strip, islice(side, CHUNK))), np.int64).view(np.uint64)
                for side in (left, right)
            )
            if not len(first):
                return
            yield first, second, first * FACTOR + second
