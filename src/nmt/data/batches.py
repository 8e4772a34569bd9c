"""Which sentences make up which batch: a pure function of (lengths, budget, seed, epoch).

An epoch is a list of *global* batches, the same whatever the number of devices: sentences of like length
together, at most so many source and so many target tokens each, in random order. Devices and accumulation
only slice a global batch, so a step's gradient does not depend on them, and the place in an epoch is one
number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class PairLengths:
    """Tokens of each sentence pair as the model sees them, end marks included."""

    source: IntArray
    target: IntArray

    @classmethod
    def with_marks(cls, source: npt.NDArray[np.integer], target: npt.NDArray[np.integer]) -> "PairLengths":
        """From lengths without special tokens: every side gets one, its end (or, decoding, its start)."""
        return cls(source.astype(np.int32) + np.int32(1), target.astype(np.int32) + np.int32(1))

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The global batches of one pass over the data, in the order they are trained on."""

    order: IntArray
    """Sentences, batch by batch; four bytes each, for there may be tens of millions."""
    bounds: npt.NDArray[np.int64]
    """(batches, 2): batch i is order[bounds[i, 0]:bounds[i, 1]], longest target first to shortest or reverse."""

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, index: int) -> IntArray:
        start, end = self.bounds[index]
        return self.order[start:end]


def plan_epoch(lengths: PairLengths, batch_tokens: int, seed: int, epoch: int) -> EpochPlan:
    """Deal all sentences into batches of at most `batch_tokens` source and target tokens.

    Every sentence is in just one batch; pairs of the same lengths change partners from epoch to epoch.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(np.arange(len(lengths), dtype=np.int32))
    order = order[np.lexsort([_short(side)[order] for side in (lengths.source, lengths.target)])]
    starts = _cut(_ends(lengths.source[order]), _ends(lengths.target[order]), batch_tokens)
    bounds = np.stack([starts, np.append(starts[1:], len(order))], axis=1)
    return EpochPlan(order, random.permutation(bounds))


def _short(lengths: IntArray) -> IntArray:
    """Lengths as 16-bit numbers where they fit, which are sorted several times as fast."""
    return lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths


def _ends(lengths: IntArray) -> IntArray:
    return lengths.cumsum(dtype=np.int64)


def _cut(source_ends: IntArray, target_ends: IntArray, budget: int) -> IntArray:
    """Where batches start, each as long as both budgets allow. A single longer sentence is a batch by itself."""
    starts, start, source_before, target_before = [], 0, 0, 0
    while start < len(source_ends):
        starts.append(start)
        source_end = source_ends.searchsorted(source_before + budget, side="right")
        target_end = target_ends.searchsorted(target_before + budget, side="right")
        start = max(start + 1, int(min(source_end, target_end)))
        source_before, target_before = source_ends[start - 1], target_ends[start - 1]
    return np.array(starts, dtype=np.int64)


def split_batch(sentences: IntArray, lengths: PairLengths, devices: int, device_tokens: int) -> list[IntArray]:
    """Slice a global batch for `devices`, each slice of at most `device_tokens` a side where one sentence allows.

    Slice i goes to device i % devices, so that all get the same number of slices; 0 tokens means one slice
    a device. Slices take turns at the sentences, which lie by length, so they weigh nearly the same. There may
    be empty ones, where sentences are fewer than devices.
    """
    budget = device_tokens or max(int(lengths.source[sentences].sum()), int(lengths.target[sentences].sum()))
    count = devices
    while True:
        micro_batches = [sentences[first::count] for first in range(count)]
        if all(len(part) <= 1 or _fits(part, lengths, budget) for part in micro_batches):
            return micro_batches
        count += devices


def _fits(sentences: IntArray, lengths: PairLengths, budget: int) -> bool:
    return bool(lengths.source[sentences].sum() <= budget and lengths.target[sentences].sum() <= budget)
