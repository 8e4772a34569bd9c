"""A checkpoint contains the state of the step at which it was saved, even if training continues meanwhile."""

import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.store import PairStore
from nmt.errors import CommonError, UserError
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load
from nmt.runs.checkpoints import Checkpoints
from nmt.training.checkpointing import CheckpointManager
from nmt.training.state import TrainingState
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, weights

__all__ = ["store"]
TEMPLATE = Checkpoint(
    meta=CheckpointMeta(step=0), weights={}, trainer={"data": "data"}, config_text="seed: 1\n"
)  # fmt: skip
"""What all checkpoints have in common."""


def checkpoint_manager(folder: Path, *, in_background: bool) -> CheckpointManager:
    checkpoints = Checkpoints(folder, TRAINING.keep_last, TRAINING.keep_best)
    return CheckpointManager(checkpoints, TEMPLATE, in_background=in_background)


def training_state() -> TrainingState:
    state = TrainingState(trainer())
    state.best.value = 1.5
    return state


def save(manager: CheckpointManager, state: TrainingState) -> None:
    manager.save(state, {"loss": 2.5}, interim=False)


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
    """Return an event that every save waits for before it writes."""
    opened, write = threading.Event(), Checkpoints.save

    def waiting(self: Checkpoints, checkpoint: Checkpoint) -> Path:
        assert opened.wait(10)
        return write(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "save", waiting)
    return opened


def test_training_during_a_background_write_does_not_change_the_checkpoint(
    store: PairStore,
    tmp_path: Path,
    gate: threading.Event,
) -> None:
    state = training_state()
    ours = state.trainer
    batches = batches_of(store, TRAINING, 5)
    for item in batches[:3]:
        ours.update(item)
    before, saved_trainer = weights(ours), ours.to_save()
    expected = {key: value for key, value in saved_trainer.items() if key != "optimizer"}
    moments = [each["exp_avg"].clone() for each in saved_trainer["optimizer"]["state"].values()]
    manager = checkpoint_manager(tmp_path, in_background=True)
    save(manager, state)
    for item in batches[3:]:
        ours.update(item)  # in place, while the writer waits
    assert not Checkpoints(tmp_path).steps()
    gate.set()
    manager.wait_until_saved()
    (found,) = Checkpoints(tmp_path).steps()
    saved = load(found.path, trainer=True)
    assert (saved.step, found.valid, saved.config_text) == (3, {"loss": 2.5}, "seed: 1\n")
    assert same(saved.weights, before)
    assert not same(saved.weights, weights(ours))
    assert saved.trainer is not None
    assert saved.trainer["data"] == "data"
    assert saved.trainer["loop"]["best"] == 1.5
    assert same({key: saved.trainer["trainer"][key] for key in expected}, expected)
    found_moments = [each["exp_avg"] for each in saved.trainer["trainer"]["optimizer"]["state"].values()]
    assert same(found_moments, moments)


def test_checkpoints_are_written_in_order_and_pruned(store: PairStore, tmp_path: Path) -> None:
    state = training_state()
    ours = state.trainer
    manager = checkpoint_manager(tmp_path, in_background=True)
    expected = {}
    for item in batches_of(store, TRAINING, 9):
        ours.update(item)
        save(manager, state)
        expected[ours.step] = weights(ours)
    manager.wait_until_saved()
    found = Checkpoints(tmp_path).steps()
    assert all(same(load(saved.path).weights, expected[saved.step]) for saved in found)
    steps = [saved.step for saved in found]
    assert steps[-TRAINING.keep_last :] == list(range(10 - TRAINING.keep_last, 10))
    assert len(steps) <= TRAINING.keep_last + TRAINING.keep_best


def test_close_waits_for_the_writer(store: PairStore, tmp_path: Path, gate: threading.Event) -> None:
    state = training_state()
    ours = state.trainer
    manager = checkpoint_manager(tmp_path, in_background=True)
    (only,) = batches_of(store, TRAINING, 1)
    ours.update(only)
    save(manager, state)
    threading.Timer(0.2, gate.set).start()
    manager.close()
    assert [saved.step for saved in Checkpoints(tmp_path).steps()] == [1]


@pytest.mark.parametrize("then", ["save", "check_writer", "wait_until_saved"])
def test_an_error_of_the_background_writer_is_raised(store: PairStore, tmp_path: Path, then: str) -> None:
    state = training_state()
    ours = state.trainer
    (only,) = batches_of(store, TRAINING, 1)
    ours.update(only)
    (tmp_path / "checkpoints").write_text("no folder can be here")
    manager = checkpoint_manager(tmp_path, in_background=True)
    save(manager, state)
    what: Callable[[], object] = {
        "save": lambda: save(manager, state),
        "check_writer": manager.check_writer,
        "wait_until_saved": manager.wait_until_saved,
    }[then]
    if then == "check_writer":  # which does not wait
        assert manager._pending is not None
        futures.wait([manager._pending])
    with pytest.raises((UserError, CommonError), match="cannot write"):
        what()
