"""The time of the parts of training steps: forward, loss, backward and optimizer."""

import time
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from nmt.data.loader import GlobalBatch, MicroBatch
from nmt.estimate.operation import Part
from nmt.measuring.steps import wait
from nmt.model.packed import Packed
from nmt.model.word_vectors import Factors
from nmt.training.loss import Losses
from nmt.training.objective import Objective, WordLoss
from nmt.training.trainer import Trainer


def part_seconds(trainer: Trainer, batches: Sequence[GlobalBatch]) -> dict[Part, float]:
    """Return the mean seconds per step of each part.

    The device finishes each part before the next one begins, so that the sum is more than the time of a step.
    """
    objective = cast(Objective, trainer.replicas.objective)
    clock, inner = _Clock(trainer.machine.device), objective.word_loss
    objective.word_loss = _TimedLoss(inner, clock)
    try:
        for batch in batches:
            clock.enter(Part.OPTIMIZER)
            trainer.update(batch)
        clock.stop()
    finally:
        objective.word_loss = inner
    return {part: seconds / len(batches) for part, seconds in clock.seconds.items()}


class _Clock:
    """Adds up the time of each part."""

    def __init__(self, device: torch.device) -> None:
        self.seconds = dict.fromkeys(Part, 0.0)
        self._device = device
        self._part: Part | None = None
        self._since = 0.0

    def enter(self, part: Part | None) -> None:
        """End the current part when the device is done with it, and begin another."""
        wait(self._device)
        now = time.perf_counter()
        if self._part is not None:
            self.seconds[self._part] += now - self._since
        self._part, self._since = part, now

    def stop(self) -> None:
        """End the current part."""
        self.enter(None)


class _TimedLoss:
    """A loss that tells the clock where the parts of a step begin; the objective calls it around the model."""

    def __init__(self, inner: WordLoss, clock: _Clock) -> None:
        self._inner, self._clock = inner, clock

    def inputs(self, batch: MicroBatch) -> tuple[Packed, Packed]:
        """See `WordLoss.inputs`."""
        self._clock.enter(Part.FORWARD)
        return self._inner.inputs(batch)

    def __call__(self, outputs: Factors, labels: Tensor) -> Losses:
        """See `WordLoss`."""
        self._clock.enter(Part.LOSS)
        losses = self._inner(outputs, labels)
        self._clock.enter(Part.BACKWARD)
        losses.smoothed.register_hook(self._await_end_of_backward)
        return losses

    def _await_end_of_backward(self, _: Tensor) -> None:
        engine = torch.autograd.Variable._execution_engine
        engine.queue_callback(lambda: self._clock.enter(Part.OPTIMIZER))  # called when the whole pass is done
