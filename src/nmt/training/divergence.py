"""Which steps went wrong: noted on the device at each step, looked at now and then, so that no step waits for it."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.data.loader import DataPosition, MicroBatch

RISE = 2.0
"""A loss that is so much above its lowest has exploded: training never gives back so much of what it learned."""
NAMED = 8
"""Pairs of a batch that are named; `nmt batch` shows them all."""


class StepRecord(NamedTuple):
    """A step, as far as one must know it to look into it."""

    step: int
    data_position: DataPosition
    norm: float
    """Of its gradient."""
    pairs: list[int]
    """The first of its pairs, by their numbers in the training text."""

    def __str__(self) -> str:
        named = ", ".join(map(str, self.pairs))
        return (
            f"step {self.step} (epoch {self.data_position.epoch + 1}, batch {self.data_position.batch + 1}, "
            f"pairs {named}, ... of train; `nmt batch batch.step={self.step}` shows them all)"
        )


class DivergenceMonitor:
    """Tells the steps whose gradient was not finite, how many there were in a row, and where a loss explodes."""

    def __init__(self) -> None:
        self.in_a_row = 0
        """Bad steps up to the last step that was looked at."""
        self.first_bad = 0
        """The first of these."""
        self.largest: StepRecord | None = None
        """The step of the largest finite gradient since the last call of `explosion`."""
        self._unseen: list[tuple[int, DataPosition, list[int]]] = []
        self._norms: list[Tensor] = []
        self._lowest = math.inf

    def note(self, step: int, data_position: DataPosition, norm: Tensor, micro_batches: Sequence[MicroBatch]) -> None:
        """Remember a step; its gradient's norm stays on the device."""
        numbers = (int(number) for batch in micro_batches for number in batch.sentences[:NAMED])
        self._unseen.append((step, data_position, list(islice(numbers, NAMED))))
        self._norms.append(norm.clone())

    def look(self) -> list[StepRecord]:
        """The bad steps since the last call. This waits for the device."""
        if not self._norms:
            return []
        norms = torch.stack(self._norms).tolist()
        unseen = zip(self._unseen, norms, strict=True)
        noted = [StepRecord(step, data_position, norm, pairs) for (step, data_position, pairs), norm in unseen]
        self._unseen, self._norms = [], []
        for each in noted:
            self._count(each)
        return [each for each in noted if not math.isfinite(each.norm)]

    def forgive(self) -> None:
        """Begin to count anew."""
        self.in_a_row = 0

    def explosion(self, loss: float) -> str:
        """What to say of the mean loss since the last call; nothing where it is as one expects."""
        largest, lowest, self.largest = self.largest, self._lowest, None
        self._lowest = min(lowest, loss) if math.isfinite(loss) else lowest
        if not loss > lowest + RISE or largest is None:
            return ""
        return f"the loss has risen from {lowest:.2f} to {loss:.2f}; largest gradient ({largest.norm:.3g}): {largest}"

    def _count(self, each: StepRecord) -> None:
        if math.isfinite(each.norm):
            self.in_a_row = 0
            if self.largest is None or each.norm > self.largest.norm:
                self.largest = each
        else:
            self.first_bad = self.first_bad if self.in_a_row else each.step
            self.in_a_row += 1


def weights_hash(model: nn.Module) -> list[int]:
    """Stands for a model's weights, bit for bit; worked out on the device in no time."""
    hashes = [torch.hash_tensor(weight.detach()).view(torch.int64) for weight in model.parameters()]
    return [int(each) for each in torch.stack(hashes).tolist()]
