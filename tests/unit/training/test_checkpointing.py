"""Checkpoints written while training goes on are those of the moment in which they were asked for."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.store import PairStore
from nmt.errors import CommonError, UserError
from nmt.runs.checkpoints import Checkpoints, load
from nmt.training.checkpointing import CheckpointContents, CheckpointManager
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import TRAINING, store, trainer, weights, work

__all__ = ["store"]


def checkpoint_manager(ours: Trainer, folder: Path, *, aside: bool) -> CheckpointManager:
    return CheckpointManager(ours, Checkpoints(folder), CheckpointContents([], "seed: 1\n", "data"), aside=aside)


def save(keep: CheckpointManager) -> None:
    state = {"trainer": keep.trainer.state(), "loop": {"best": 1.5}}
    keep.save(keep.trainer.step, state, {"loss": 2.5}, interim=False)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What every save waits for before it writes."""
    opened, write = threading.Event(), Checkpoints.save

    def waiting(self: Checkpoints, step: int, **what: Any) -> Path:
        assert opened.wait(10)
        return write(self, step, **what)

    monkeypatch.setattr(Checkpoints, "save", waiting)
    return opened


def test_training_goes_on_and_what_is_written_does_not_change(
    store: PairStore, tmp_path: Path, gate: threading.Event
) -> None:
    ours = trainer()
    batches = work(store, TRAINING, 5)
    for item in batches[:3]:
        ours.update(item)
    before, state = weights(ours), ours.state()
    expected = {key: value for key, value in state.items() if key != "optimizer"}
    moments = [each["exp_avg"].clone() for each in state["optimizer"]["state"].values()]
    keep = checkpoint_manager(ours, tmp_path, aside=True)
    save(keep)
    for item in batches[3:]:
        ours.update(item)  # in place, while the writer waits
    assert not Checkpoints(tmp_path).steps()
    gate.set()
    keep.wait_until_saved()
    (found,) = Checkpoints(tmp_path).steps()
    saved = load(found.path, trainer=True)
    assert (saved.step, found.valid, saved.config_text) == (3, {"loss": 2.5}, "seed: 1\n")
    assert same(saved.weights, before)
    assert not same(saved.weights, weights(ours))
    assert saved.trainer is not None
    assert saved.trainer["data"] == "data"
    assert saved.trainer["loop"] == {"best": 1.5}
    assert same({key: saved.trainer["trainer"][key] for key in expected}, expected)
    found_moments = [each["exp_avg"] for each in saved.trainer["trainer"]["optimizer"]["state"].values()]
    assert same(found_moments, moments)


def test_one_after_the_other_and_only_those_to_keep(store: PairStore, tmp_path: Path) -> None:
    ours = trainer()
    keep = checkpoint_manager(ours, tmp_path, aside=True)
    for item in work(store, TRAINING, 9):
        ours.update(item)
        save(keep)
    keep.wait_until_saved()
    steps = [saved.step for saved in Checkpoints(tmp_path).steps()]
    assert steps[-TRAINING.keep_last :] == list(range(10 - TRAINING.keep_last, 10))
    assert len(steps) <= TRAINING.keep_last + TRAINING.keep_best


def test_whoever_closes_waits_for_the_writer(store: PairStore, tmp_path: Path, gate: threading.Event) -> None:
    ours = trainer()
    keep = checkpoint_manager(ours, tmp_path, aside=True)
    (only,) = work(store, TRAINING, 1)
    ours.update(only)
    save(keep)
    threading.Timer(0.2, gate.set).start()
    keep.close()
    assert [saved.step for saved in Checkpoints(tmp_path).steps()] == [1]


@pytest.mark.parametrize("then", ["save", "settle", "restore_before"])
def test_what_stops_the_writer_is_told(store: PairStore, tmp_path: Path, then: str) -> None:
    ours = trainer()
    (only,) = work(store, TRAINING, 1)
    ours.update(only)
    (tmp_path / "checkpoints").write_text("no folder can be here")
    keep = checkpoint_manager(ours, tmp_path, aside=True)
    save(keep)
    what: Callable[[], object] = {
        "save": lambda: save(keep),
        "settle": keep.wait_until_saved,
        "restore_before": lambda: keep.restore_before(5),
    }[then]
    with pytest.raises((UserError, CommonError), match="cannot write"):
        what()


@pytest.mark.parametrize("aside", [False, True])
def test_goes_back_to_what_was_just_saved(store: PairStore, tmp_path: Path, aside: bool) -> None:
    ours = trainer()
    first, second = work(store, TRAINING, 2)
    ours.update(first)
    before = weights(ours)
    keep = checkpoint_manager(ours, tmp_path, aside=aside)
    save(keep)
    ours.update(second)
    assert keep.restore_before(2) == 1
    assert same(weights(ours), before)
    with pytest.raises((UserError, CommonError), match="before its first checkpoint"):
        keep.restore_before(1)
