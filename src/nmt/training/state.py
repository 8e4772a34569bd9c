"""The state of a training run: saved in checkpoints, and restored on resume."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NotRequired, TypedDict, cast

from nmt.runs.checkpoint import Checkpoint, check_weights
from nmt.training.schedule import reachable_step
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


class TrainingState:
    """A trainer and what the loop remembers, saved and restored together."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.best: float | None = None
        """The lowest loss on the development set so far."""
        self.stale = 0
        """Validations since the best one."""
        self.validation_due = False
        """Whether the current step must be validated before the next one."""
        self._seconds = 0.0
        self._since: float | None = None
        """The time from which on seconds count in addition; None while the clock stands still."""

    @property
    def finished(self) -> bool:
        """Whether the last step is done and validated."""
        return self.trainer.step >= self.trainer.config.steps and not self.validation_due

    @property
    def seconds(self) -> float:
        """The seconds spent on steps in the whole run, without validation and checkpoints."""
        return self._seconds + (0.0 if self._since is None else time.monotonic() - self._since)

    def start_clock(self) -> None:
        """Count seconds from now on."""
        self._since = time.monotonic()

    @contextmanager
    def pause_clock(self) -> Iterator[None]:
        """Do not count the seconds in this block, not even if an exception ends it."""
        self._seconds, self._since = self.seconds, None
        try:
            yield
        finally:
            self.start_clock()

    def note_validation(self, figures: Mapping[str, float]) -> None:
        """Compare the figures of a validation with the best so far."""
        self.validation_due, loss = False, figures["loss"]
        is_better = math.isfinite(loss) and (self.best is None or loss < self.best)
        self.best, self.stale = (loss, 0) if is_better else (self.best, self.stale + 1)

    def to_save(self) -> SavedState:
        """Return the training state, without the weights, for a checkpoint. All processes must call this."""
        return {
            "trainer": self.trainer.to_save(),
            "loop": {
                "best": self.best,
                "stale": self.stale,
                "unseen": self.validation_due,
                "training_seconds": self.seconds,
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
        self.best, self.stale = loop["best"], loop["stale"]
        self.validation_due = loop.get("unseen", False)
        self._seconds = loop.get("training_seconds", 0.0)
        self.trainer.last_step = reachable_step(self.trainer.step, self._seconds, self.trainer.config)


def saved_state(checkpoint: Checkpoint) -> SavedState:
    """Return the training state that a checkpoint contains, which must be loaded with `trainer=True`."""
    return cast(SavedState, checkpoint.trainer)
