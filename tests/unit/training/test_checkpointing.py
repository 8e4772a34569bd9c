"""A checkpoint contains the state of the step at which it was saved, even if training continues meanwhile."""

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from nmt.data.store import PairStore
from nmt.errors import CommonError, UserError
from nmt.runs.checkpoints import Checkpoints, load
from nmt.training import host_copies
from nmt.training.checkpointing import CheckpointContents, CheckpointManager
from nmt.training.host_copies import HostCopier
from nmt.training.state import TrainingState
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, weights

__all__ = ["store"]


def checkpoint_manager(folder: Path, *, in_background: bool, copier: HostCopier | None = None) -> CheckpointManager:
    contents = CheckpointContents({}, "seed: 1\n", "data")
    return CheckpointManager(Checkpoints(folder), contents, TRAINING, in_background=in_background, copier=copier)


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

    def waiting(self: Checkpoints, step: int, **what: Any) -> Path:
        assert opened.wait(10)
        return write(self, step, **what)

    monkeypatch.setattr(Checkpoints, "save", waiting)
    return opened


class Stream:
    """A stream of a GPU that makes its copies as late as it may: only when something waits for them."""

    active: "Stream | None" = None
    progress: threading.Event
    """Set when the GPU has come as far as a process waits for."""

    def __init__(self, *_: object) -> None:
        self.work: list[Callable[[], object]] = []
        self.lock = threading.Lock()

    def record_event(self) -> "Event":
        return Event(self, len(self.work))

    def wait_stream(self, other: "Stream") -> None:
        assert not other.work

    def wait_event(self, event: "Event") -> None:
        event.finish()  # this stream computes immediately what it is given after this call

    @contextmanager
    def __call__(self) -> Iterator[None]:
        Stream.active = self
        yield
        Stream.active = None


class Event(NamedTuple):
    """A point in the work of a stream."""

    stream: Stream
    end: int

    def synchronize(self) -> None:
        assert Stream.progress.wait(10)
        self.finish()

    def finish(self) -> None:
        with self.stream.lock:
            for copy in self.stream.work[: self.end]:
                copy()
            self.stream.work[: self.end] = [lambda: None] * self.end


@pytest.fixture
def copier(monkeypatch: pytest.MonkeyPatch) -> HostCopier:
    """Return a copier from the CPU whose streams are late."""
    default, copy = Stream(), torch.Tensor.copy_

    def late_copy(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        if Stream.active is None:
            return copy(self, source, non_blocking)
        assert non_blocking
        Stream.active.work.append(lambda: copy(self, source))
        return self

    progress = threading.Event()
    progress.set()
    monkeypatch.setattr(Stream, "progress", progress, raising=False)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: default)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None)
    monkeypatch.setattr(torch.Tensor, "copy_", late_copy)
    monkeypatch.setattr(host_copies, "page_locked", lambda shape, dtype: torch.full(shape, 7, dtype=dtype))
    return HostCopier(torch.device("cpu"))


@pytest.fixture(params=["copied by the process", "copied by a stream"])
def any_copier(request: pytest.FixtureRequest) -> HostCopier | None:
    return request.getfixturevalue("copier") if request.param == "copied by a stream" else None


def test_training_during_a_background_write_does_not_change_the_checkpoint(
    store: PairStore,
    tmp_path: Path,
    gate: threading.Event,
    any_copier: HostCopier | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Stream, "progress", gate, raising=False)
    state = training_state()
    ours = state.trainer
    batches = batches_of(store, TRAINING, 5)
    for item in batches[:3]:
        ours.update(item)
    before, saved_trainer = weights(ours), ours.to_save()
    expected = {key: value for key, value in saved_trainer.items() if key != "optimizer"}
    moments = [each["exp_avg"].clone() for each in saved_trainer["optimizer"]["state"].values()]
    manager = checkpoint_manager(tmp_path, in_background=True, copier=any_copier)
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


def test_checkpoints_are_written_in_order_and_pruned(
    store: PairStore, tmp_path: Path, any_copier: HostCopier | None
) -> None:
    state = training_state()
    ours = state.trainer
    manager = checkpoint_manager(tmp_path, in_background=True, copier=any_copier)
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


def test_buffers_are_reused_for_tensors_of_the_same_shape(copier: HostCopier) -> None:
    first, done = copier.copy({"a": torch.arange(3), "b": [torch.ones(2), None]})
    done.synchronize()
    place = first["a"].data_ptr()
    second, done = copier.copy({"a": torch.arange(3) + 1, "b": [torch.ones(4), 1.5], "c": (torch.zeros(()),)})
    done.synchronize()
    assert second["a"].data_ptr() == place
    assert same(second, {"a": torch.tensor([1, 2, 3]), "b": [torch.ones(4), 1.5], "c": (torch.zeros(()),)})


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


@pytest.mark.parametrize("then", ["save", "check_writer", "wait_until_saved", "load_before"])
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
        "load_before": lambda: manager.load_before(5),
    }[then]
    if then == "check_writer":  # which does not wait
        assert manager._pending is not None
        futures.wait([manager._pending])
    with pytest.raises((UserError, CommonError), match="cannot write"):
        what()


@pytest.mark.parametrize("in_background", [False, True])
def test_a_rewind_loads_the_last_checkpoint_before_the_step(
    store: PairStore, tmp_path: Path, in_background: bool
) -> None:
    state = training_state()
    ours = state.trainer
    first, second = batches_of(store, TRAINING, 2)
    ours.update(first)
    before = weights(ours)
    manager = checkpoint_manager(tmp_path, in_background=in_background)
    save(manager, state)
    ours.update(second)
    checkpoint = manager.load_before(2)
    assert checkpoint.step == 1
    state.rewind(checkpoint)
    assert (ours.step, ours.data_position) == (2, second.after)
    assert same(weights(ours), before)
    with pytest.raises((UserError, CommonError), match="before its first checkpoint"):
        manager.load_before(1)
