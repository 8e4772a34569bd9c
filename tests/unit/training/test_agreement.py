"""Several processes decide seldom, at the same steps, and still soon enough."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.compute import distributed, replication
from nmt.compute.signals import Interruptible, StopRequest
from nmt.data.store import PairStore
from nmt.runs.checkpoints import Checkpoints
from nmt.training import gradient
from nmt.training.agreement import AGREEMENT_SECONDS, AgreementSchedule
from nmt.training.decision import Decision, Ending
from nmt.training.loop import Loop
from nmt.training.stopping import LEAVING_SECONDS
from nmt.training.trainer import Trainer
from tests.unit.training.test_loop import Clock, build, store, time_of

__all__ = ["store", "time_of"]


def agreements(schedule: AgreementSchedule, seconds_per_step: Iterator[float], steps: int) -> list[tuple[int, float]]:
    """Return the steps after which a process agrees, with the seconds since the start."""
    found, seconds = [], 0.0
    for step in range(1, steps + 1):
        seconds += next(seconds_per_step)
        if schedule.is_due(step):
            schedule.plan_next(step, seconds, schedule.step_microseconds(step, seconds))
            found.append((step, seconds))
    return found


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 2)


def constant(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


def test_a_single_process_decides_after_every_step() -> None:
    found = agreements(AgreementSchedule(0, 0.0), constant(0.001), 20)
    assert [step for step, _ in found] == list(range(1, 21))


@pytest.mark.usefixtures("two_processes")
@pytest.mark.parametrize(("per_step", "interval"), [(0.01, 50), (0.003, 166), (0.2, 2), (0.4, 1), (3.0, 1)])
def test_the_interval_grows_until_it_takes_the_time_between_agreements(per_step: float, interval: int) -> None:
    found = agreements(AgreementSchedule(0, 0.0), constant(per_step), 2000)
    steps = [step for step, _ in found]
    gaps = np.diff(steps)
    assert steps[0] == 1
    assert gaps[-1] == interval
    assert (gaps[1:] <= 2 * gaps[:-1]).all()


@pytest.mark.usefixtures("two_processes")
def test_processes_with_clocks_of_their_own_agree_at_the_same_steps() -> None:
    random = np.random.default_rng(1)
    processes = [AgreementSchedule(0, 0.0) for _ in range(4)]
    clocks = np.zeros(4)
    for step in range(1, 3000):
        clocks += random.exponential([0.001, 0.003, 0.01, 0.002])
        due = {schedule.is_due(step) for schedule in processes}
        assert len(due) == 1
        if due == {True} or step % 700 == 0:
            slowest = max(each.step_microseconds(step, clock) for each, clock in zip(processes, clocks, strict=True))
            for each, clock in zip(processes, clocks, strict=True):
                each.plan_next(step, clock, slowest)


@pytest.fixture
def agreed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the steps after which a loop agrees with another process, which never objects."""
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(replication, "parallel", lambda objective, rounded: objective)
    monkeypatch.setattr(gradient, "embedding_gradient", lambda _: None)
    steps: list[int] = []
    agree = Loop._agree

    def noting(self: Loop, stop_request: StopRequest) -> Decision:
        steps.append(self.trainer.step)
        return agree(self, stop_request)

    monkeypatch.setattr(Loop, "_agree", noting)
    return steps


def test_the_loop_agrees_at_validations_and_saves_and_seldom_in_between(
    tmp_path: Path, time_of: Clock, store: PairStore, agreed: list[int]
) -> None:
    time_of.step = 0.01
    assert build(tmp_path, time_of, {"save_every": 40}).train(store) == Ending.DONE
    assert agreed == [1, 3, 7, 15, 31, 40, 72, 80, 100, 100]
    assert [saved.step for saved in Checkpoints(tmp_path).steps()] == [40, 80, 100]


def test_a_signal_ends_several_processes_at_their_next_agreement(
    tmp_path: Path, time_of: Clock, store: PairStore, agreed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    time_of.step, update = 0.01, Trainer.update

    def signalled(self: Trainer, *what: Any) -> None:
        update(self, *what)
        if self.step == 33:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Trainer, "update", signalled)
    assert build(tmp_path, time_of, {"save_every": 1000}).train(store) == Ending.SIGNAL
    assert agreed == [1, 3, 7, 15, 31, 63]
    assert [saved.step for saved in Checkpoints(tmp_path).steps()] == [63]
    assert AGREEMENT_SECONDS > 0.01 * (63 - 33)


@pytest.mark.parametrize("step", [0.01, 0.2, 0.7, 10.0])
def test_several_processes_end_within_their_limit(
    tmp_path: Path, time_of: Clock, store: PairStore, agreed: list[int], step: float
) -> None:
    time_of.step = step
    seconds = 30 * step + time_of.save + LEAVING_SECONDS
    ours = build(tmp_path, time_of, {"max_minutes": seconds / 60, "save_every": 1000})
    assert ours.train(store) == Ending.TIME
    assert time_of.now + LEAVING_SECONDS <= seconds
    assert 30 - ours.trainer.step <= 1 + AGREEMENT_SECONDS / step
    assert agreed[-1] == ours.trainer.step


def test_a_validation_that_a_signal_ends_is_followed_by_an_agreement(
    tmp_path: Path, time_of: Clock, store: PairStore, agreed: list[int]
) -> None:
    time_of.step = 0.01
    ours = build(tmp_path, time_of, {"valid_every": 5})

    def signalled(interruptible_together: Interruptible) -> dict[str, float]:
        with interruptible_together():
            os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the validation went on")

    ours.validate = signalled
    assert ours.train(store) == Ending.SIGNAL
    assert agreed == [1, 3, 5, 5]
