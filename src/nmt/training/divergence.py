"""Detect divergence: steps without a finite gradient, and a loss that explodes.

Gradient norms stay on the device until a log line or a checkpoint needs them, so that no step waits for the device.
"""

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.data.loader import DataPosition, MicroBatch
from nmt.errors import CommonError
from nmt.model.interface import TranslationModel
from nmt.training.loss_scale import MIN_SCALE

LOSS_RISE = 2.0
"""The loss has exploded if its mean exceeds the lowest mean so far by more than this."""
MAX_NAMED_PAIRS = 8
"""The largest number of sentence pairs of a batch that a message names; `nmt batch` shows them all."""
MAX_NAMED_STEPS = 20
"""The largest number of steps that a message names."""


class StepRecord(NamedTuple):
    """A step, and what its user needs to inspect it."""

    step: int
    data_position: DataPosition
    norm: float
    """The norm of its gradient."""
    pairs: list[int]
    """The first of its sentence pairs, by their numbers in the training text."""
    loss_scale: float = MIN_SCALE
    """The factor of its loss; only fp16 needs one above the least."""

    @property
    def overflowed(self) -> bool:
        """Whether its gradient was too large for fp16, and may not be so with a lower factor of the loss."""
        return not math.isfinite(self.norm) and self.loss_scale > MIN_SCALE

    def __str__(self) -> str:
        named = ", ".join(map(str, self.pairs))
        return (
            f"step {self.step} (epoch {self.data_position.epoch + 1}, batch {self.data_position.batch + 1}, "
            f"pairs {named}, ... of train; `nmt batch batch.step={self.step}` shows them all)"
        )


class DivergenceMonitor:
    """Counts consecutive steps without a finite gradient, and notices when the loss explodes."""

    def __init__(self) -> None:
        self.consecutive = 0
        """Consecutive bad steps up to the last one examined."""
        self.first_bad = 0
        """The first of these."""
        self._largest: StepRecord | None = None
        """The step with the largest finite gradient since the last call of `take_loss_warning`."""
        self._recorded: list[tuple[int, DataPosition, list[int]]] = []
        self._norms: list[Tensor] = []
        self._scales: list[Tensor] = []
        self._lowest_loss = math.inf

    def record(
        self,
        step: int,
        data_position: DataPosition,
        norm: Tensor,
        micro_batches: Sequence[MicroBatch],
        loss_scale: Tensor | None = None,
    ) -> None:
        """Record a step; the norm of its gradient, and the factor of its loss in fp16, stay on the device."""
        pairs = (int(pair) for batch in micro_batches for pair in batch.sentences[:MAX_NAMED_PAIRS])
        self._recorded.append((step, data_position, list(islice(pairs, MAX_NAMED_PAIRS))))
        self._norms.append(norm.clone())
        if loss_scale is not None:
            self._scales.append(loss_scale.clone())

    def take_bad_steps(self) -> list[StepRecord]:
        """Return the steps since the last call whose gradient was not finite. This waits for the device."""
        if not self._norms:
            return []
        norms = torch.stack(self._norms).tolist()
        scales = torch.stack(self._scales).tolist() if self._scales else [MIN_SCALE] * len(norms)
        steps = [
            StepRecord(step, data_position, norm, pairs, scale)
            for (step, data_position, pairs), norm, scale in zip(self._recorded, norms, scales, strict=True)
        ]
        self._recorded, self._norms, self._scales = [], [], []
        for each in steps:
            self._count(each)
        return [each for each in steps if not math.isfinite(each.norm)]

    def take_loss_warning(self, loss: float) -> str:
        """Return a warning if the mean loss since the last call has exploded, else an empty string."""
        largest, lowest, self._largest = self._largest, self._lowest_loss, None
        self._lowest_loss = min(lowest, loss) if math.isfinite(loss) else lowest
        if not loss > lowest + LOSS_RISE or largest is None:
            return ""
        return f"the loss has risen from {lowest:.2f} to {loss:.2f}; largest gradient ({largest.norm:.3g}): {largest}"

    def _count(self, each: StepRecord) -> None:
        if math.isfinite(each.norm):
            self.consecutive = 0
            if self._largest is None or each.norm > self._largest.norm:
                self._largest = each
        elif not each.overflowed:
            self.first_bad = self.first_bad if self.consecutive else each.step
            self.consecutive += 1


def warnings_about(steps: Sequence[StepRecord]) -> list[str]:
    """Return descriptions of steps without a finite gradient: of those that overflowed in fp16, and of the others."""
    overflows, bad = ([each for each in steps if each.overflowed == wanted] for wanted in (True, False))
    return [*([_overflow_warning(overflows)] if overflows else []), *([_bad_steps_warning(bad)] if bad else [])]


def _overflow_warning(overflows: Sequence[StepRecord]) -> str:
    """Return a description of steps whose gradient was too large for fp16."""
    named = ", ".join(str(each.step) for each in overflows[:MAX_NAMED_STEPS])
    more = ", ..." if len(overflows) > MAX_NAMED_STEPS else ""
    steps = f"step {named}" if len(overflows) == 1 else f"{len(overflows)} steps: {named}{more}"
    scale = max(overflows[-1].loss_scale / 2, MIN_SCALE)
    return f"the gradient overflowed in fp16, so nothing was changed and the loss scale fell to {scale:g} at {steps}"


def _bad_steps_warning(bad: Sequence[StepRecord]) -> str:
    """Return a description of steps without a finite gradient, the first of them in full."""
    if len(bad) == 1:
        return f"no finite gradient, so nothing was changed at {bad[0]}"
    others = ", ".join(str(each.step) for each in bad[1:MAX_NAMED_STEPS])
    more = ", ..." if len(bad) > MAX_NAMED_STEPS else ""
    return f"no finite gradient, so nothing was changed at {len(bad)} steps: {bad[0]}; {others}{more}"


def divergence_error(first: int, consecutive: int) -> str:
    """Return why training stops, and what to do."""
    return (
        f"training diverged: {consecutive} steps in a row, from step {first} on, had no finite gradient; `nmt batch "
        f"batch.step={first}` shows the text of the first. Earlier checkpoints, if any, are untouched: "
        "train under another name= with training.clip_norm=1 or a lower training.learning_rate"
    )


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
