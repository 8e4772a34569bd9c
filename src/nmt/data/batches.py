"""Which sentences make up which batch: a pure function of (lengths, budget, seed, epoch).

An epoch is a list of *global* batches, the same whatever the number of devices: sentences of like length
together, at most so many source and so many target tokens each, in random order. Devices and accumulation
only slice a global batch, so a step's gradient does not depend on them, and the place in an epoch is one
number.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of each sentence pair as the model sees them, end marks included."""

    source: Numbers
    target: Numbers

    @classmethod
    def with_marks(cls, source: npt.NDArray[np.integer], target: npt.NDArray[np.integer]) -> "Lengths":
        """From lengths without special tokens: every side gets one, its end (or, decoding, its start)."""
        return cls(source.astype(np.int64) + 1, target.astype(np.int64) + 1)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The global batches of one pass over the data, in the order they are trained on."""

    order: Numbers
    """Sentences, batch by batch."""
    bounds: npt.NDArray[np.int64]
    """(batches, 2): batch i is order[bounds[i, 0]:bounds[i, 1]], longest target first to shortest or reverse."""

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, index: int) -> Numbers:
        start, end = self.bounds[index]
        return self.order[start:end]


def plan_epoch(lengths: Lengths, batch_tokens: int, seed: int, epoch: int) -> Epoch:
    """Deal all sentences into batches of at most `batch_tokens` source and target tokens.

    Every sentence is in just one batch; pairs of the same lengths change partners from epoch to epoch.
    """
    random = np.random.default_rng([seed, epoch])
    shuffled = random.permutation(len(lengths))
    by_length = np.lexsort((lengths.source[shuffled], lengths.target[shuffled]))
    order = shuffled[by_length]
    starts = _cut(lengths.source[order], lengths.target[order], batch_tokens)
    bounds = np.stack([starts, np.append(starts[1:], len(order))], axis=1)
    return Epoch(order, cast(Numbers, random.permutation(bounds)))


def _cut(source: Numbers, target: Numbers, budget: int) -> Numbers:
    """Where batches start, each as long as both budgets allow. A single longer sentence is a batch by itself."""
    source_ends, target_ends = source.cumsum(), target.cumsum()
    starts, start = [], 0
    while start < len(source):
        starts.append(start)
        source_end = np.searchsorted(source_ends, source_ends[start] - source[start] + budget, side="right")
        target_end = np.searchsorted(target_ends, target_ends[start] - target[start] + budget, side="right")
        start = max(start + 1, int(min(source_end, target_end)))
    return np.array(starts, dtype=np.int64)


def slice_batch(sentences: Numbers, lengths: Lengths, devices: int, device_tokens: int) -> list[Numbers]:
    """Slice a global batch for `devices`, each slice of at most `device_tokens` a side where one sentence allows.

    Slice i goes to device i % devices, so that all get the same number of slices; 0 tokens means one slice
    a device. Slices take turns at the sentences, which lie by length, so they weigh nearly the same. There may
    be empty ones, where sentences are fewer than devices.
    """
    budget = device_tokens or max(int(lengths.source[sentences].sum()), int(lengths.target[sentences].sum()))
    count = devices
    while True:
        slices = [sentences[first::count] for first in range(count)]
        if all(len(part) <= 1 or _fits(part, lengths, budget) for part in slices):
            return slices
        count += devices


def _fits(sentences: Numbers, lengths: Lengths, budget: int) -> bool:
    return bool(lengths.source[sentences].sum() <= budget and lengths.target[sentences].sum() <= budget)
