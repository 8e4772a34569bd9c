"""Actors with a device each: all items are done once, whatever happens to the actors."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.data.ray import devices
from nmt.data.ray.engine import RayEngine
from nmt.errors import UserError
from tests.unit.data.ray.test_engine import dividing, failing, needs_ray, until

pytestmark = [needs_ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    with closing(RayEngine(compose(["data.engine=ray", "runtime.workers=2"]))) as engine:
        yield engine


def counting(folder: Path) -> Callable[[int], tuple[int, int]]:
    """Return a function that says in which process it is, and leave a file for each process that makes it.

    Item 0 waits until two processes have made it.
    """
    (folder / f"made-{os.getpid()}").touch()

    def count(item: int) -> tuple[int, int]:
        if item == 0:
            until(lambda: len(list(folder.iterdir())) == 2)
        return item, os.getpid()

    return count


def dying(folder: Path, always: bool) -> Callable[[int], int]:
    """Return a function that ends its process at one item, the first time or always."""

    def die(item: int) -> int:
        if item == 5 and (always or not (folder / "died").exists()):
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die


def refusing() -> Callable[[int], int]:
    raise UserError("no model")


def dying_while_made(folder: Path) -> Callable[[int], int]:
    if not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return lambda item: item


def test_each_actor_makes_the_function_once_and_keeps_it(engine: RayEngine, tmp_path: Path) -> None:
    with closing(engine.device_workers("counts", counting, tmp_path)) as workers:
        assert workers.count == 2
        ((first, _),) = workers.map([7])
        assert first == 7
        assert len(list(tmp_path.iterdir())) == 1, "one item needs one actor"
        found = dict(workers.map(range(40)))
    assert sorted(found) == list(range(40))
    assert {f"made-{process}" for process in found.values()} <= {each.name for each in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("items", [6, 30])
def test_the_work_of_a_killed_actor_is_done_by_another_one(engine: RayEngine, tmp_path: Path, items: int) -> None:
    with closing(engine.device_workers("dies", dying, tmp_path, False)) as workers:
        assert sorted(workers.map(range(items))) == list(range(items))
    assert (tmp_path / "died").exists()


def test_an_actor_that_ends_while_it_is_prepared_is_replaced(engine: RayEngine, tmp_path: Path) -> None:
    with closing(engine.device_workers("dies", dying_while_made, tmp_path)) as workers:
        assert sorted(workers.map(range(9))) == list(range(9))


def test_work_that_always_ends_its_actor_is_an_error(
    engine: RayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "RETRIES", 1)
    workers = engine.device_workers("dies", dying, tmp_path, True)
    with closing(workers), pytest.raises(UserError, match=r"a Ray worker that dies failed .*: run the same"):
        list(workers.map(range(9)))


def test_errors_of_actors_come_back(engine: RayEngine) -> None:
    with closing(engine.device_workers("fails", failing)) as workers, pytest.raises(UserError, match=r"^seven$"):
        list(workers.map(range(12)))
    with (
        closing(engine.device_workers("fails", dividing)) as workers,
        pytest.raises(UserError, match=r"a Ray worker that fails failed \(division by zero\): run the same"),
    ):
        list(workers.map(range(2)))
    with (
        closing(engine.device_workers("is not made", refusing)) as workers,
        pytest.raises(UserError, match=r"^no model$"),
    ):
        list(workers.map(range(2)))


def test_no_items_start_no_actor(engine: RayEngine, tmp_path: Path) -> None:
    with closing(engine.device_workers("counts", counting, tmp_path)) as workers:
        assert list(workers.map([])) == []
    assert not list(tmp_path.iterdir())
