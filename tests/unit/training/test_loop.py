"""When training validates, saves and ends: alone, as one of several processes, interrupted, and by time."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.compute.signals import Interruptible
from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching
from nmt.data.loader import global_batches
from nmt.data.store import PairStore
from nmt.runs.checkpoint import Checkpoint
from nmt.runs.checkpoints import Checkpoints, load_last_good
from nmt.runs.tracker import Tracker
from nmt.training.checkpointing import CheckpointManager
from nmt.training.loop import Loop
from nmt.training.schedule import learning_rate
from nmt.training.state import TrainingState
from nmt.training.stopping import Ending
from nmt.training.trainer import Trainer
from tests.unit.training.test_checkpointing import TEMPLATE
from tests.unit.training.test_trainer import MODEL, store, trainer

__all__ = ["store"]
STEP_SECONDS = 10.0


class Clock:
    """Seconds that steps take; everything else takes none, but a validation or save may."""

    now = 1e6


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours, update = Clock(), Trainer.update

    def updating(self: Trainer, *what: Any) -> None:
        update(self, *what)
        ours.now += STEP_SECONDS

    monkeypatch.setattr(time, "monotonic", lambda: ours.now)
    monkeypatch.setattr(Trainer, "update", updating)
    return ours


class Training(Loop):
    """A loop over the batches of a store, with a loss that falls."""

    def __init__(self, folder: Path, settings: dict[str, Any], checkpoint: Checkpoint | None = None) -> None:
        config = TrainingConfig(batch_tokens=60, warmup_steps=5, **{"steps": 100, "valid_every": 1000, **settings})
        state = TrainingState(trainer(config))
        if checkpoint is not None:
            state.restore(checkpoint)
        checkpoints = Checkpoints(folder, config.keep_last, config.keep_best)
        self.validated: list[int] = []
        super().__init__(state, Tracker(), self.figures, CheckpointManager(checkpoints, TEMPLATE, in_background=False))

    def figures(self, interruptible_together: Interruptible) -> dict[str, float]:
        with interruptible_together():
            self.validated.append(self.trainer.step)
        return {"loss": 1 / (1 + self.trainer.step)}

    def train(self, store: PairStore) -> Ending:
        batching, start = Batching(self.config.batch_tokens, seed=1), self.trainer.data_position
        return self.run(global_batches(store, batching, device_tokens=0, start=start, rank=0, devices=1))


def signal_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send this process SIGTERM after a step."""
    update = Trainer.update

    def signalled(self: Trainer, *what: Any) -> None:
        update(self, *what)
        if self.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Trainer, "update", signalled)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("valid_every", [3, 1000])
def test_training_minutes_count_only_steps_and_their_weights_are_validated_once(
    tmp_path: Path, store: PairStore, valid_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"max_training_minutes": 62 / 60, "valid_every": valid_every, "save_every": 4}
    with monkeypatch.context() as patched:
        signal_at(3, patched)
        assert Training(tmp_path, settings).train(store) == Ending.SIGNAL
    ours = Training(tmp_path, settings, load_last_good(tmp_path))
    assert ours.trainer.step == 3
    assert ours.train(store) == Ending.BUDGET
    assert ours.validated == ([3, 6, 7] if valid_every == 3 else [7])
    last = Checkpoints(tmp_path).steps()[-1]
    assert (last.step, last.interim, last.only_best, last.valid) == (7, False, False, {"loss": 1 / 8})
    assert not Training(tmp_path, settings, load_last_good(tmp_path)).state.validation_due


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_rate_ends_where_the_minutes_end(
    tmp_path: Path, store: PairStore, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds per step make 20 of the 100 steps, with the rates of a run of 20 steps, 3 (12%) of them warmup.

    Only before the first step the end is unknown, so it has the rate of the planned warmup of 5 steps.
    """
    rates: list[float] = []
    update = Trainer.update

    def noting(self: Trainer, *what: Any) -> None:
        update(self, *what)
        rates.append(self.learning_rate)

    monkeypatch.setattr(Trainer, "update", noting)
    settings: dict[str, Any] = {"schedule": schedule, "learning_rate": 1e-3, "max_training_minutes": 205 / 60}
    with monkeypatch.context() as patched:
        signal_at(8, patched)
        assert Training(tmp_path, settings).train(store) == Ending.SIGNAL
    assert Training(tmp_path, settings, load_last_good(tmp_path)).train(store) == Ending.BUDGET
    planned = TrainingConfig(schedule=schedule, learning_rate=1e-3, warmup_steps=3, steps=20)
    expected = [1e-3 / 5, *(learning_rate(step, planned, MODEL.d_model) for step in range(2, 21))]
    assert rates[:20] == pytest.approx(expected)


def test_the_best_steps_are_saved_in_addition_to_the_scheduled_ones(tmp_path: Path, store: PairStore) -> None:
    ours = Training(tmp_path, {"valid_every": 4, "steps": 17, "keep_best": 9, "save_every": 6})
    assert ours.train(store) == Ending.DONE
    found = Checkpoints(tmp_path).steps()
    assert [each.step for each in found if each.only_best] == [4, 8, 16]
    assert [each.step for each in found if not each.only_best] == [6, 12, 17]


def test_a_validation_that_is_not_finite_is_never_the_best() -> None:
    state = TrainingState(trainer())
    for loss, stale in ((float("nan"), 1), (3.0, 0), (float("nan"), 1), (4.0, 2), (2.0, 0), (float("inf"), 1)):
        state.note_validation({"loss": loss})
        assert state.stale == stale
    assert state.best == 2.0
