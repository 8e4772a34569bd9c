"""What sees the training of a model from outside its steps: see `Feature.hook`."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor

from nmt.model.interface import TranslationModel
from nmt.model.working_weights import WorkingWeights


class TrainingHook:
    """Sees the training of a model; its subclasses override what they need."""

    def prepare(self, model: TranslationModel) -> None:
        """Change a new model, or a restored one, before it is on its device and has an optimizer."""

    def begin(self, weights: WorkingWeights) -> None:
        """See the model on its device, before the first step; it stays there."""

    def after_step(self, step: int, finite: Tensor) -> None:
        """See the weights after a step; it has changed nothing if its gradient was not `finite`."""

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a block in which the model has the weights that validation reads."""
        return nullcontext()

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights that a checkpoint has in place of the model's, by name."""
        return {}

    @property
    def state_bytes(self) -> int:
        """The size of what it keeps on the device."""
        return 0

    def to_save(self) -> Mapping[str, Any]:
        """Return its state for a checkpoint, under keys that nothing else has."""
        return {}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint; the model has the weights of the checkpoint."""
