"""Workers give results in order, as this process does; a killed one is an error, or replaced if Ray runs it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.compute.processes import run_in_process
from nmt.data.engine import Engine, map_chunks
from nmt.errors import UserError

needs_ray = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import ray"], capture_output=True, check=False).returncode != 0,
    reason="needs the extra ray",
)
"""In another process, because Ray is slow to import and its threads outlive the import."""
RAY = Engine("ray", 2)


def results(engine: Engine, make: Callable[..., Callable[[int], object]], *args: object) -> list[object]:
    return list(map_chunks(engine, "tests", range(12), make, *args))


def sleeping(seconds: float) -> Callable[[int], int]:
    def sleep(item: int) -> int:
        time.sleep(seconds * (item % 3))
        return item

    return sleep


def failing() -> Callable[[int], int]:
    def fail(item: int) -> int:
        if item == 7:
            raise UserError("seven")
        return item

    return fail


def dying(mark: Path) -> Callable[[int], int]:
    def die_once(item: int) -> int:
        if item == 5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die_once


@pytest.mark.parametrize(
    "engine", [Engine(), Engine(workers=2), pytest.param(RAY, marks=[needs_ray, pytest.mark.slow])]
)
def test_results_are_in_order_and_errors_come_back(engine: Engine) -> None:
    assert results(engine, sleeping, 0.02) == list(range(12))
    with pytest.raises(UserError, match=r"^seven$"):
        results(engine, failing)


def test_killed_process_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a process that tests was killed, perhaps because memory ran out"):
        results(Engine(workers=2), dying, tmp_path / "died")
    with pytest.raises(UserError, match=r"a process that helps this one was killed, perhaps because memory ran out"):
        run_in_process(os._exit, 7)


@needs_ray
@pytest.mark.slow
def test_the_work_of_a_killed_worker_of_ray_is_done_by_another_one(tmp_path: Path) -> None:
    assert results(RAY, dying, tmp_path / "died") == list(range(12))
    assert (tmp_path / "died").exists()


@needs_ray
@pytest.mark.slow
def test_ray_reads_only_a_few_chunks_ahead() -> None:
    left = iter(range(100))
    found = map_chunks(RAY, "tests", left, sleeping, 0)
    assert next(found) == 0
    assert next(left) < 20


def test_ray_that_is_not_there_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    with pytest.raises(UserError, match=r"needs the package ray: .*pip install 'ray>="):
        results(RAY, failing)
