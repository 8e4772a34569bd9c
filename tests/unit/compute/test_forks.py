"""Tasks in copies of this process: their results, errors and deaths; no copy is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from nmt.compute.forks import can_fork, run_tasks_in_forks
from nmt.errors import UserError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")


def test_each_task_is_run_once_and_copies_take_turns() -> None:
    product = torch.ones(64, 64) @ torch.ones(64, 64)

    def work(task: int) -> tuple[int, int, float]:
        return os.getpid(), torch.get_num_threads(), float((product @ product).sum()) + task

    results = list(run_tasks_in_forks(work, range(10), 3))
    assert sorted(task for task, _ in results) == list(range(10))
    copies = {process for _, (process, _, _) in results}
    assert len(copies) == 3
    assert os.getpid() not in copies
    assert {threads for _, (_, threads, _) in results} == {1}
    assert all(total == 64.0**5 + task for task, (_, _, total) in results)
    assert not active_children()


def test_an_error_of_a_task_is_raised() -> None:
    def work(task: int) -> int:
        if task == 1:
            raise UserError("not this one")
        time.sleep(60)
        return task

    started = time.monotonic()
    with pytest.raises(UserError, match="not this one"):
        list(run_tasks_in_forks(work, range(4), 2))
    assert time.monotonic() - started < 60
    assert not active_children()


def test_a_copy_that_is_killed_is_an_error() -> None:
    def work(task: int) -> int:
        if task == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    with pytest.raises(UserError, match="ended with -9"):
        list(run_tasks_in_forks(work, range(4), 2))
    assert not active_children()


def test_closing_the_iterator_kills_the_copies() -> None:
    def work(task: int) -> int:
        if task:
            time.sleep(60)
        return task

    results = run_tasks_in_forks(work, range(4), 2)
    assert next(results) == (0, 0)
    assert len(active_children()) == 2
    results.close()
    assert not active_children()


@pytest.mark.parametrize(("seconds", "tasks"), [(0.05, 20), (300, 2)], ids=["between tasks", "in a task"])
def test_copies_do_not_outlive_the_process(seconds: float, tasks: int) -> None:
    code = rf"""
import os, time
from nmt.compute.forks import run_tasks_in_forks
def work(task):
    os.write(1, f"{{os.getpid()}}\n".encode())
    time.sleep({seconds})
    return task
list(run_tasks_in_forks(work, range(100_000), 2))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        copies = {int(process.stdout.readline()) for _ in range(tasks)}
        process.kill()
    assert len(copies) == 2
    deadline = time.monotonic() + 60
    while any(_runs(copy) for copy in copies):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def test_a_process_with_other_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        threading, "enumerate", lambda: [threading.main_thread()]
    )  # other tests may leave threads behind
    assert can_fork()
    monitor = type("TMonitor", (threading.Thread,), {})()
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), monitor])
    assert can_fork()
    monkeypatch.undo()
    end = threading.Event()
    thread = threading.Thread(target=end.wait, args=(10,))
    thread.start()
    try:
        assert not can_fork()
    finally:
        end.set()
        thread.join()
