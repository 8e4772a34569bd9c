"""Several processes decide together one step late, and wait for each other only before validations and saves."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.compute import distributed
from nmt.compute.signals import Interruptible
from nmt.data.store import PairStore
from nmt.runs.checkpoints import Checkpoints
from nmt.training import gradient, replicas
from nmt.training.stopping import LEAVING_SECONDS, Agreement, Decision, Ending, Saving
from nmt.training.trainer import Trainer
from tests.unit.training.test_loop import Clock, build, store, time_of

__all__ = ["store", "time_of"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[int]]:
    """Train with another process, which never objects; return what this one sends to it."""
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(replicas, "parallel", lambda objective: objective)
    monkeypatch.setattr(gradient, "embedding_gradient", lambda _: None)
    values: list[Sequence[int]] = []
    highest = distributed.highest_of_each

    def noting(own: Sequence[int]) -> Callable[[], Sequence[int]]:
        values.append(own)
        return highest(own)

    monkeypatch.setattr(distributed, "highest_of_each", noting)
    return values


def test_a_decision_is_read_one_step_later_unless_the_processes_wait(sent: list[Sequence[int]]) -> None:
    agreement = Agreement()
    assert agreement.reach(Decision(last_step=10), wait=False) is None
    assert agreement.reach(Decision(last_step=11), wait=False) == Decision(last_step=10)
    assert agreement.reach(Decision(last_step=12), wait=True) == Decision(last_step=12)
    assert agreement.reach(Decision(Ending.SIGNAL), wait=False) is None
    assert agreement.reach(Decision(Ending.TIME), wait=False) == Decision(Ending.SIGNAL)
    assert len(sent) == 4  # nothing is sent when all are about to act together


def test_a_single_process_decides_immediately() -> None:
    decision = Decision(Ending.TIME, Saving.SCHEDULED, 7)
    assert Agreement().reach(decision, wait=False) == decision


@pytest.mark.usefixtures("sent")
def test_a_signal_ends_several_processes_one_step_later(
    tmp_path: Path, time_of: Clock, store: PairStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Trainer.update

    def signalled(self: Trainer, *what: Any) -> None:
        update(self, *what)
        if self.step == 33:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Trainer, "update", signalled)
    assert build(tmp_path, time_of, {"save_every": 1000}).train(store) == Ending.SIGNAL
    assert [saved.step for saved in Checkpoints(tmp_path).steps()] == [34]


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize(("step", "valid_every"), [(0.01, 1000), (10.0, 1000), (10.0, 13)])
def test_several_processes_end_within_their_limit(
    tmp_path: Path, time_of: Clock, store: PairStore, step: float, valid_every: int
) -> None:
    time_of.step = step
    seconds = 30 * step + (valid_every < 30) * 2 * time_of.validation + time_of.save + LEAVING_SECONDS
    settings = {"max_minutes": seconds / 60, "save_every": 1000, "valid_every": valid_every}
    ours = build(tmp_path, time_of, settings)
    assert ours.train(store) == Ending.TIME
    assert time_of.now + LEAVING_SECONDS <= seconds
    assert 30 - ours.trainer.step <= 2 + (valid_every < 30) * 5


@pytest.mark.usefixtures("sent")
def test_a_validation_that_a_signal_ends_is_repeated_when_the_run_resumes(
    tmp_path: Path, time_of: Clock, store: PairStore
) -> None:
    ours = build(tmp_path, time_of, {"valid_every": 5})

    def signalled(interruptible_together: Interruptible) -> dict[str, float]:
        with interruptible_together():
            os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the validation went on")

    ours.validate = signalled
    assert ours.train(store) == Ending.SIGNAL
    assert ours.state.validation_due
