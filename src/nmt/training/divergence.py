"""Detect divergence: steps without a finite gradient, and weights that differ between processes."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.data.loader import DataPosition
from nmt.errors import CommonError
from nmt.model.interface import TranslationModel
from nmt.training.loss_scale import MIN_SCALE

MAX_NAMED_STEPS = 20
"""The largest number of steps that a message names."""


class StepRecord(NamedTuple):
    """A step whose gradient may not be finite."""

    step: int
    data_position: DataPosition
    norm: Tensor
    """The norm of its gradient, on the device."""
    loss_scale: Tensor | None
    """The factor of its loss in fp16, on the device."""


class DivergenceMonitor:
    """Counts consecutive steps without a finite gradient.

    Norms stay on the device until a log line or a checkpoint needs them, so that no step waits for the device.
    """

    def __init__(self) -> None:
        self._recorded: list[StepRecord] = []
        self._consecutive = self._first = 0
        """Consecutive bad steps up to the last one examined, and the first of these."""

    def record(self, step: int, data_position: DataPosition, norm: Tensor, loss_scale: Tensor | None = None) -> None:
        """Record a step; nothing waits for its gradient."""
        scale = None if loss_scale is None else loss_scale.clone()
        self._recorded.append(StepRecord(step, data_position, norm.clone(), scale))

    def check(self, max_bad_steps: int) -> Iterator[str]:
        """Yield a warning about the bad steps since the last call; raise an error after too many consecutive ones.

        A gradient that overflowed in fp16 may not do so with a lower factor of the loss, so it does not count.
        """
        recorded, self._recorded = self._recorded, []
        norms = torch.stack([each.norm for each in recorded]).tolist() if recorded else []
        bad, overflows = list[StepRecord](), list[StepRecord]()
        for each, norm in zip(recorded, norms, strict=True):
            if math.isfinite(norm):
                self._consecutive = 0
            elif each.loss_scale is not None and float(each.loss_scale) > MIN_SCALE:
                overflows.append(each)
            else:
                self._first = self._first if self._consecutive else each.step
                self._consecutive += 1
                bad.append(each)
        if overflows:
            yield f"the gradient overflowed in fp16, so nothing was changed and the loss scale fell {_named(overflows)}"
        if bad:
            yield f"no finite gradient, so nothing was changed {_named(bad)}"
        if self._consecutive >= max_bad_steps:
            raise CommonError(
                f"training diverged: {self._consecutive} steps in a row, from step {self._first} on, had no finite "
                f"gradient; `nmt batch batch.step={self._first}` shows the text of the first. Earlier checkpoints, if "
                "any, are untouched: train under another name= with training.clip_norm=1 or a lower "
                "training.learning_rate"
            )


def _named(steps: list[StepRecord]) -> str:
    """Return the numbers of steps, and how to see the text of the first."""
    (step, (epoch, batch), *_), *others = steps
    first = f"step {step} (epoch {epoch + 1}, batch {batch + 1}; `nmt batch batch.step={step}` shows its text)"
    if not others:
        return f"at {first}"
    numbers = ", ".join(str(each.step) for each in others[: MAX_NAMED_STEPS - 1])
    more = ", ..." if len(steps) > MAX_NAMED_STEPS else ""
    return f"at {len(steps)} steps: {first}, {numbers}{more}"


def weight_hashes(model: nn.Module | TranslationModel) -> Tensor:
    """Return a hash of each weight, computed on the device, to compare models bit for bit."""
    hashes = [torch.hash_tensor(weight.detach()).view(torch.int64) for weight in model.parameters()]
    return torch.stack(hashes)


def check_same_weights(model: nn.Module, step: int, checked_step: int) -> None:
    """Raise an error in all processes if the weights of one differ at a step, given the last one that was checked."""
    first, *others = distributed.gather_objects(weight_hashes(model).tolist())
    for rank, theirs in enumerate(others, start=1):
        if theirs != first:
            raise CommonError(
                f"the weights of rank {rank} differ from those of rank 0 at step {step}, but not at step "
                f"{checked_step}: the memory or the device of its machine may be faulty. Nothing was saved "
                "since: the same command resumes from the last checkpoint"
            )
