"""What is left out of the training text: explicit filters, applied in order, each counted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress

import numpy as np
import numpy.typing as npt

from nmt.config.schema import DataConfig
from nmt.data.sources.cells import on_one_line
from nmt.data.sources.source import Pair
from nmt.text.blocks import blocks

CHUNK = 50_000
"""Pairs that are read, filtered and written at once."""
ROOM = 1 << 26
"""Characters that are at most."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Says for each pair of a chunk whether it stays."""

    name: str
    keeps: Callable[[Sequence[Pair]], Sequence[bool]]


def sentence_filters() -> list[Filter]:
    """Return the filters of held-out text: they drop what cannot be scored, and nothing because it is difficult."""
    return [
        Filter("empty", _each(lambda source, target: bool(source.strip() and target.strip()))),
        Filter("control characters", _each(lambda source, target: not (breaks_lines(source) or breaks_lines(target)))),
    ]


def training_filters(config: DataConfig) -> list[Filter]:
    """Return the filters of the training text, in the order in which they are applied."""
    filters = sentence_filters()
    if config.drop_copies:
        filters.append(Filter("copies", _each(lambda source, target: source.strip() != target.strip())))
    if most := config.max_words:
        filters.append(Filter("words", _each(lambda source, target: within(source, most) and within(target, most))))
    if ratio := config.max_ratio:
        filters.append(Filter("ratio", _each(lambda source, target: alike(source, target, ratio))))
    if config.deduplicate:
        filters.append(Filter("duplicates", FirstSeen().keeps))
    return filters


def chunks(pairs: Iterator[Pair], size: int = CHUNK) -> Iterator[list[Pair]]:
    """Take pairs together in lists."""
    return blocks(pairs, size, lambda pair: len(pair[0]) + len(pair[1]), ROOM)


def join_lines(chunk: list[Pair]) -> tuple[list[Pair], int]:
    """Put each sentence on one line, and count those that had line breaks inside, as cells of tables may."""
    broken = sum("\n" in side for pair in chunk for side in pair)
    if not broken:
        return chunk, 0
    return [(on_one_line(source), on_one_line(target)) for source, target in chunk], broken


def apply(filters: Sequence[Filter], chunk: list[Pair], dropped: dict[str, int]) -> list[Pair]:
    """Keep the pairs of a chunk that pass all filters; count in `dropped` what each took out."""
    for filter_ in filters:
        kept = list(compress(chunk, filter_.keeps(chunk)))
        dropped[filter_.name] = dropped.get(filter_.name, 0) + len(chunk) - len(kept)
        chunk = kept
    return chunk


def breaks_lines(text: str) -> bool:
    """Whether a text cannot stand on one line of a text file."""
    return "\n" in text or "\0" in text


def within(text: str, most: int) -> bool:
    """Whether a text has at most so many words."""
    return len(text) < 2 * most or len(text.split()) <= most


def alike(source: str, target: str, ratio: float) -> bool:
    """Whether neither side has more than `ratio` times the other's words."""
    shorter, longer = sorted((len(source.split()), len(target.split())))
    return longer <= ratio * shorter


class FirstSeen:
    """Keeps the first of equal pairs; remembers eight bytes a pair, in a few sorted arrays."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._runs: list[npt.NDArray[np.uint64]] = []

    def keeps(self, chunk: Sequence[Pair]) -> list[bool]:
        """Whether each pair is seen for the first time."""
        hashes = np.frombuffer(b"".join(map(_hash, chunk)), np.uint64)
        new, first = np.unique(hashes, return_index=True)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, new), len(run) - 1)
            fresh = run[places] != new
            new, first = new[fresh], first[fresh]
        self._remember(new)
        keep = np.zeros(len(chunk), dtype=bool)
        keep[first] = True
        return [bool(each) for each in keep]

    def _remember(self, new: npt.NDArray[np.uint64]) -> None:
        """Add a run; merge runs of like size, so that there are few."""
        while self._runs and len(self._runs[-1]) <= 2 * len(new):
            new = np.sort(np.concatenate((self._runs.pop(), new)), kind="stable")
        if len(new):
            self._runs.append(new)


def _hash(pair: Pair) -> bytes:
    return blake2b("\n".join(pair).encode(), digest_size=8).digest()


def _each(keeps: Callable[[str, str], bool]) -> Callable[[Sequence[Pair]], list[bool]]:
    return lambda chunk: [keeps(source, target) for source, target in chunk]
