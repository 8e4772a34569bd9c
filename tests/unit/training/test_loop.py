"""Training ends within its time limits; the test has a clock of its own, which steps and saves move on."""

import time
from pathlib import Path
from typing import Any

import pytest

from nmt.compute.signals import Interruptible
from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching
from nmt.data.loader import global_batches
from nmt.data.store import PairStore
from nmt.estimate.parameters import count_parameters
from nmt.runs.checkpoint import Checkpoint
from nmt.runs.checkpoints import Checkpoints, load_last_good
from nmt.runs.tracker import NullTracker
from nmt.training import stopping
from nmt.training.checkpointing import CheckpointManager
from nmt.training.loop import Loop
from nmt.training.schedule import learning_rate
from nmt.training.state import TrainingState
from nmt.training.stopping import LEAVING_SECONDS, Ending
from nmt.training.trainer import Trainer
from tests.unit.training.test_checkpointing import TEMPLATE
from tests.unit.training.test_trainer import MODEL, VOCABULARY, store, trainer

__all__ = ["store"]


SIZE = count_parameters(MODEL, VOCABULARY, VOCABULARY).total


class Clock:
    """Seconds since the start of the process; everything else takes no time."""

    now = 0.0
    step, validation, save = 10.0, 35.0, 7.0

    def uptime(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return 1e6 + self.now


class Training(Loop):
    """A loop over the batches of a store."""

    def train(self, store: PairStore) -> Ending:
        config = self.config
        return self.run(
            global_batches(
                store,
                Batching(config.batch_tokens, seed=1),
                device_tokens=0,
                start=self.trainer.data_position,
                rank=0,
                devices=1,
            )
        )


@pytest.fixture
def time_of(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a clock that steps and saves move on."""
    ours, update, save = Clock(), Trainer.update, CheckpointManager.save

    def updating(self: Trainer, *what: Any) -> None:
        update(self, *what)
        ours.now += ours.step

    def saving(self: CheckpointManager, *what: Any, **more: Any) -> None:
        save(self, *what, **more)
        ours.now += ours.save

    monkeypatch.setattr(stopping, "uptime", ours.uptime)
    monkeypatch.setattr(stopping, "DISK_BYTES_PER_SECOND", 3 * 8 * SIZE / ours.save)
    monkeypatch.setattr(time, "monotonic", ours.monotonic)
    monkeypatch.setattr(Trainer, "update", updating)
    monkeypatch.setattr(CheckpointManager, "save", saving)
    return ours


def build(folder: Path, ours: Clock, settings: dict[str, Any], checkpoint: Checkpoint | None = None) -> Training:
    config = TrainingConfig(batch_tokens=60, warmup_steps=5, **{"steps": 100, "valid_every": 1000, **settings})
    state = TrainingState(trainer(config))
    if checkpoint is not None:
        state.restore(checkpoint)
    contents = TEMPLATE
    checkpoint_manager = CheckpointManager(
        Checkpoints(folder, config.keep_last, config.keep_best), contents, in_background=False
    )

    def validate(interruptible_together: Interruptible) -> dict[str, float]:
        with interruptible_together():
            ours.now += ours.validation
        return {"loss": 1 / (1 + state.trainer.step)}

    return Training(state, NullTracker(), validate, checkpoint_manager)


@pytest.mark.parametrize("started", [0.0, 40.0])
@pytest.mark.parametrize(
    ("settings", "made"),
    [
        ({}, 10),  # ten steps, a save of 7 s and 5 s to leave are 112 s
        ({"save_every": 2}, 8),  # three saves before, and a fourth to end with
        ({"valid_every": 3}, 5),  # the second validation would not fit
        ({"valid_every": 3, "save_every": 3}, 5),
    ],
)
def test_the_process_ends_within_its_limit(
    tmp_path: Path, time_of: Clock, store: PairStore, settings: dict[str, Any], made: int, started: float
) -> None:
    time_of.now = started
    ours = build(tmp_path, time_of, {"max_minutes": (120 + started) / 60, "save_every": 1000, **settings})
    assert ours.train(store) == Ending.TIME
    assert time_of.now + LEAVING_SECONDS <= 120 + started
    assert ours.trainer.step == made
    kept = load_last_good(tmp_path)
    assert kept is not None
    assert kept.step == made


def test_a_process_past_its_limit_still_makes_one_step(tmp_path: Path, time_of: Clock, store: PairStore) -> None:
    time_of.now = 3600.0
    ours = build(tmp_path, time_of, {"max_minutes": 1})
    assert ours.train(store) == Ending.TIME
    assert ours.trainer.step == 1


def test_the_training_time_budget_counts_only_steps_and_survives_a_resume(
    tmp_path: Path, time_of: Clock, store: PairStore
) -> None:
    settings = {"max_training_minutes": 62 / 60, "valid_every": 2, "save_every": 3}
    first = build(tmp_path, time_of, {**settings, "max_minutes": 90 / 60})
    assert first.train(store) == Ending.TIME
    kept = load_last_good(tmp_path)
    assert kept is not None
    second = build(tmp_path, time_of, settings, kept)
    assert 0 < second.trainer.step < 7
    assert second.train(store) == Ending.BUDGET
    assert second.trainer.step == 7


@pytest.mark.parametrize("valid_every", [3, 1000])
def test_the_weights_that_the_minutes_gave_are_validated_once_and_count_as_the_result(
    tmp_path: Path, time_of: Clock, store: PairStore, valid_every: int
) -> None:
    settings = {"max_training_minutes": 55 / 60, "valid_every": valid_every, "save_every": 4}
    ours = build(tmp_path, time_of, settings)
    validate, validated = ours.validate, []

    def noting(interruptible_together: Interruptible) -> dict[str, float]:
        validated.append(ours.trainer.step)
        return validate(interruptible_together)

    ours.validate = noting
    assert ours.train(store) == Ending.BUDGET
    assert validated == ([3, 6] if valid_every == 3 else [6])
    last = Checkpoints(tmp_path).steps()[-1]
    assert (last.step, last.interim, last.only_best, last.valid) == (6, False, False, {"loss": 1 / 7})
    again = build(tmp_path, time_of, settings, load_last_good(tmp_path))
    assert not again.state.validation_due


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_rate_ends_where_the_minutes_end(
    tmp_path: Path, time_of: Clock, store: PairStore, schedule: str, monkeypatch: pytest.MonkeyPatch
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
    settings: dict[str, Any] = {"schedule": schedule, "learning_rate": 1e-3}
    limit = {"max_training_minutes": 205 / 60}
    first = build(tmp_path, time_of, {**settings, **limit, "save_every": 4, "max_minutes": 3})
    assert first.train(store) == Ending.TIME
    kept = load_last_good(tmp_path)
    second = build(tmp_path, time_of, {**settings, **limit}, kept)
    assert 5 < second.trainer.step < 20  # the rate of the first step after resuming depends on the end, too
    assert second.train(store) == Ending.BUDGET
    planned = TrainingConfig(**settings, warmup_steps=3, steps=20)
    expected = [1e-3 / 5, *(learning_rate(step, planned, MODEL.d_model) for step in range(2, 21))]
    assert rates[:20] == pytest.approx(expected)


def test_the_best_steps_are_saved_beside_the_scheduled_ones(tmp_path: Path, time_of: Clock, store: PairStore) -> None:
    time_of.validation = time_of.save = 0.0
    ours = build(tmp_path, time_of, {"valid_every": 4, "steps": 17, "keep_best": 9, "save_every": 6})
    assert ours.train(store) == Ending.DONE
    found = Checkpoints(tmp_path).steps()
    assert [each.step for each in found if each.only_best] == [4, 8, 16]
    assert [each.step for each in found if not each.only_best] == [6, 12, 17]
