"""The state of a training run: saved in checkpoints, and restored on resume."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from nmt.runs.checkpoint import Checkpoint, check_weights
from nmt.training.divergence import DivergenceMonitor
from nmt.training.stopping import Stopwatch, reachable_step
from nmt.training.trainer import SavedTrainer, Trainer


class SavedLoop(TypedDict):
    """The part of trainer.pt that belongs to the loop."""

    best: float | None
    stale: int
    unseen: NotRequired[bool]
    """Whether the step still has to be validated."""
    training_seconds: NotRequired[float]


class SavedState(TypedDict):
    """What a checkpoint stores in trainer.pt; checkpoints of nmt 0.1.0 lack the keys that are not required."""

    trainer: SavedTrainer
    loop: SavedLoop


@dataclass
class BestValidation:
    """The lowest loss on the development set so far."""

    value: float | None = None
    stale: int = 0
    """Validations since the best one."""

    def update(self, figures: Mapping[str, float]) -> None:
        """Compare the figures of a validation with the best so far."""
        value = figures["loss"]
        is_better = math.isfinite(value) and (self.value is None or value < self.value)
        self.value, self.stale = (value, 0) if is_better else (self.value, self.stale + 1)


class TrainingState:
    """A trainer and what the loop remembers, saved and restored together."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.best = BestValidation()
        self.divergence = DivergenceMonitor()
        self.validation_due = False
        """Whether the current step must be validated before the next one."""
        self.clock = Stopwatch()
        """Counts the seconds spent on steps in the whole run, without validation and checkpoints."""
        self._seconds_before = 0.0

    @property
    def finished(self) -> bool:
        """Whether the last step is done and validated."""
        return self.trainer.step >= self.trainer.config.steps and not self.validation_due

    def start_clock(self) -> None:
        """Count from now on: the time before the first step is not training time."""
        self.clock = Stopwatch(self._seconds_before)

    def to_save(self) -> SavedState:
        """Return the training state, without the weights, for a checkpoint. All processes must call this."""
        return {
            "trainer": self.trainer.to_save(),
            "loop": {
                "best": self.best.value,
                "stale": self.best.stale,
                "unseen": self.validation_due,
                "training_seconds": self.clock.seconds(),
            },
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint, including its weights."""
        saved = saved_state(checkpoint)
        shapes = {name: weight.shape for name, weight in self.trainer.model.state_dict().items()}
        check_weights(shapes, checkpoint.weights, checkpoint.path)
        self.trainer.replicas.load(checkpoint.weights)
        self.trainer.restore(saved["trainer"])
        loop = saved["loop"]
        self.best = BestValidation(loop["best"], loop["stale"])
        self.validation_due = loop.get("unseen", False)
        self._seconds_before = loop.get("training_seconds", 0.0)
        self.trainer.last_step = reachable_step(self.trainer.step, self._seconds_before, self.trainer.config)


def saved_state(checkpoint: Checkpoint) -> SavedState:
    """Return the training state that a checkpoint contains, which must be loaded with `trainer=True`."""
    return cast(SavedState, checkpoint.trainer)
