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
TEMPLATE = Checkpoint(meta=CheckpointMeta(step=0), weights={}, trainer={"data": "data"}, config_text="seed: 1\n")
"""What all checkpoints have in common."""


def manager_of(folder: Path) -> CheckpointManager:
    checkpoints = Checkpoints(folder, TRAINING.keep_last, TRAINING.keep_best)
    return CheckpointManager(checkpoints, TEMPLATE, in_background=True)


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


def test_training_during_a_background_write_does_not_change_the_checkpoint(
    store: PairStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, write = threading.Event(), Checkpoints.save

    def waiting(self: Checkpoints, checkpoint: Checkpoint) -> Path:
        assert opened.wait(10)
        return write(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "save", waiting)
    state, manager = TrainingState(trainer()), manager_of(tmp_path)
    ours, state.best = state.trainer, 1.5
    batches = batches_of(store, TRAINING, 5)
    for item in batches[:3]:
        ours.update(item)
    before, saved_trainer = weights(ours), ours.to_save()
    expected = {key: value for key, value in saved_trainer.items() if key != "optimizer"}
    moments = [each["exp_avg"].clone() for each in saved_trainer["optimizer"]["state"].values()]
    save(manager, state)
    for item in batches[3:]:
        ours.update(item)  # in place, while the writer waits
    assert not Checkpoints(tmp_path).steps()
    threading.Timer(0.1, opened.set).start()
    manager.close()  # waits for the writer
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
    state, manager, expected = TrainingState(trainer()), manager_of(tmp_path), {}
    for item in batches_of(store, TRAINING, 9):
        state.trainer.update(item)
        save(manager, state)
        expected[state.trainer.step] = weights(state.trainer)
    manager.wait_until_saved()
    found = Checkpoints(tmp_path).steps()
    assert all(same(load(saved.path).weights, expected[saved.step]) for saved in found)
    assert [saved.step for saved in found][-TRAINING.keep_last :] == list(range(10 - TRAINING.keep_last, 10))
    assert len(found) <= TRAINING.keep_last + TRAINING.keep_best


@pytest.mark.parametrize("then", ["save", "check_writer", "wait_until_saved"])
def test_an_error_of_the_background_writer_is_raised(store: PairStore, tmp_path: Path, then: str) -> None:
    state, manager = TrainingState(trainer()), manager_of(tmp_path)
    (only,) = batches_of(store, TRAINING, 1)
    state.trainer.update(only)
    (tmp_path / "checkpoints").write_text("no folder can be here")
    save(manager, state)
    what: Callable[[], object] = (lambda: save(manager, state)) if then == "save" else getattr(manager, then)
    if then == "check_writer":  # which does not wait
        assert manager._pending is not None
        futures.wait([manager._pending])
    with pytest.raises((UserError, CommonError), match="cannot write"):
        what()
