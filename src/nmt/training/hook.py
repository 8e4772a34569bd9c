"""Observe the training of a model between its steps: a moving average, or passes recorded as CUDA graphs."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from torch import Tensor

from nmt.training.replicas import Replicas


class Report(NamedTuple):
    """What a hook has to say at a log line."""

    figures: Mapping[str, object] = {}
    """Further figures of the `train` event in metrics.jsonl, by name."""
    warnings: Sequence[str] = ()
    """Lines for the user, which are shown as warnings."""
    lines: Sequence[str] = ()
    """Other lines for the user."""


class TrainingHook:
    """Observes the training of a model; subclasses override what they need."""

    def begin(self, replicas: Replicas) -> None:
        """Receive the model on its device, before the first step; the weights in `replicas.trained` stay there."""

    def after_step(self, step: int, finite: Tensor) -> None:
        """Act after a step, which has changed nothing if its gradient was not `finite`."""

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context in which the model has the weights to validate."""
        return nullcontext()

    def weights(self) -> Mapping[str, Tensor]:
        """Return, by name, the weights that a checkpoint stores instead of the model's. All processes call this."""
        return {}

    @property
    def state_bytes(self) -> int:
        """The size in bytes of what the hook keeps on the device."""
        return 0

    def to_save(self) -> Mapping[str, Any]:
        """Return the state of the hook for a checkpoint, under keys that nothing else has. All processes call this."""
        return {}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint; the model has the weights of the checkpoint."""

    def report(self, step: int) -> Report:
        """Return what to say at the log line of a step. All processes call this at the same steps."""
        return Report()
