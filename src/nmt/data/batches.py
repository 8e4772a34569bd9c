"""Plan the global batches of an epoch: a pure function of (lengths, token budget, seed, epoch).

A global batch has at most a given number of source tokens and of target tokens. Its sentences have similar lengths, as
in the paper, or random ones: both are fast, because nothing is padded, but the gradient of a small batch of one length
is less like that of the whole text. The global batches of an epoch come in random order and do not depend on the number
of devices. Devices and gradient accumulation split a global batch into micro-batches, so the gradient of a step does
not depend on them either, except for rounding and the dropout masks. The position in an epoch is one number.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.training import TrainingConfig

IntArray = npt.NDArray[np.integer[Any]]

PLANNED_AHEAD = 1000
"""The next epoch is planned in the background when this many global batches of the current one remain.

Planning takes 1-2 s for 36 million pairs, which is the time of a hundred steps or more on several GPUs.
"""


@dataclass(frozen=True, slots=True)
class Batching:
    """How the text is divided into global batches."""

    tokens: int
    """The largest number of source tokens, and of target tokens, in a global batch."""
    seed: int
    """The seed of the order of the pairs and of the batches."""
    by_length: bool = True
    """Whether the pairs of a global batch have similar lengths."""

    @classmethod
    def of(cls, training: TrainingConfig, seed: int) -> "Batching":
        """Return what the settings of training ask for."""
        return cls(training.batch_tokens, seed, training.group_by_length)


class PairLengths(NamedTuple):
    """The lengths of sentence pairs in tokens, including the start and end marks that the model reads."""

    source: IntArray
    target: IntArray

    @classmethod
    def with_marks(cls, source: npt.NDArray[np.integer], target: npt.NDArray[np.integer]) -> "PairLengths":
        """Count the special token on each side: the source ends with one, and the decoder's input begins with one."""
        return cls(np.add(source, 1, dtype=np.int32), np.add(target, 1, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The global batches of one pass over the data, in training order."""

    order: IntArray
    """Indices of sentence pairs, batch after batch; four bytes each, because there may be tens of millions."""
    bounds: npt.NDArray[np.int64]
    """(batches, 2): batch i is order[bounds[i, 0]:bounds[i, 1]], sorted by length."""

    def __len__(self) -> int:
        """Return the number of global batches."""
        return len(self.bounds)

    def __getitem__(self, index: int) -> IntArray:
        """Return the sentence pairs of a global batch."""
        start, end = self.bounds[index]
        return self.order[start:end]


PlanOf = Callable[[int], EpochPlan]
"""Plans an epoch, given its number."""


def plan_epoch(lengths: PairLengths, batching: Batching, epoch: int) -> EpochPlan:
    """Divide all sentence pairs into global batches.

    Every pair is in exactly one batch. The pairs are shuffled in each epoch, so batches differ.
    """
    random = np.random.default_rng([batching.seed, epoch])
    order = random.permutation(np.arange(len(lengths.source), dtype=np.int32))
    return divide_pairs(order, lengths, batching, random)


def divide_pairs(order: IntArray, lengths: PairLengths, batching: Batching, random: np.random.Generator) -> EpochPlan:
    """Divide shuffled sentence pairs into global batches, in random order."""
    if batching.by_length:
        order = _sorted_by_length(order, lengths)
    starts = _batch_starts(order, lengths, batching.tokens)
    bounds = np.stack([starts, np.append(starts[1:], len(order))], axis=1)
    if not batching.by_length:
        for start, end in bounds.tolist():
            order[start:end] = _sorted_by_length(order[start:end], lengths)
    return EpochPlan(order, random.permutation(bounds))


def _sorted_by_length(order: IntArray, lengths: PairLengths) -> IntArray:
    """Return pairs by target length, then by source length; those of equal lengths stay in their order."""
    keys = [side[order] for side in lengths]
    # 16-bit numbers are sorted several times faster
    small = [each.astype(np.uint16) if each.max(initial=0) < 1 << 16 else each for each in keys]
    return order[np.lexsort(small)]


def _batch_starts(order: IntArray, lengths: PairLengths, budget: int) -> npt.NDArray[np.int64]:
    """Return the index at which each batch starts; batches are as large as both budgets allow, and never empty."""
    ends = [side[order].cumsum(dtype=np.int64) for side in lengths]
    starts, start, before = [], 0, [np.int64(0)] * len(ends)
    while start < len(order):
        starts.append(start)
        stops = [int(each.searchsorted(sum_ + budget, side="right")) for each, sum_ in zip(ends, before, strict=True)]
        start = max(start + 1, min(stops))
        before = [each[start - 1] for each in ends]
    return np.array(starts, np.int64)


def planned_batches(plan_of: PlanOf, epoch: int, first: int) -> Iterator[tuple[int, EpochPlan, int]]:
    """Yield the epoch, its plan and the index of each global batch, endlessly, from batch `first` of an epoch on.

    `plan_of` plans an epoch. The next epoch is planned in the background, while the last batches of the current one are
    used, so no more than two plans are in memory.
    """
    with ThreadPoolExecutor(1, "plan") as planner:
        next_plan: Future[EpochPlan] = planner.submit(plan_of, epoch)
        while True:
            plan = next_plan.result()
            last_part = max(first, len(plan) - PLANNED_AHEAD)
            yield from ((epoch, plan, index) for index in range(first, last_part))
            next_plan = planner.submit(plan_of, epoch + 1)
            yield from ((epoch, plan, index) for index in range(last_part, len(plan)))
            epoch, first = epoch + 1, 0


def split_batch(sentences: IntArray, lengths: PairLengths, devices: int, device_tokens: int) -> list[IntArray]:
    """Split a global batch into micro-batches of at most `device_tokens` source and target tokens.

    A single longer sentence is a micro-batch of its own; 0 tokens means one micro-batch per device. Micro-batch i goes
    to device i % devices, and all devices get the same number. Sentences are dealt out in turn: they are sorted by
    length, so the micro-batches are nearly equal in size. Some are empty if there are fewer sentences than devices.
    """
    count = devices
    while True:
        micro_batches = [sentences[first::count] for first in range(count)]
        if not device_tokens or all(
            len(each) <= 1 or max(int(side[each].sum()) for side in lengths) <= device_tokens for each in micro_batches
        ):
            return micro_batches
        count += devices
