"""Work in copies of this process: all of it, errors and deaths included, and nothing is left behind."""

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

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made by fork")


def test_each_task_is_done_once_by_the_copies_in_turn() -> None:
    found: dict[int, tuple[int, int, float]] = {}
    product = torch.ones(64, 64) @ torch.ones(64, 64)

    def work(task: int) -> tuple[int, int, float]:
        return os.getpid(), torch.get_num_threads(), float((product @ product).sum()) + task

    run_tasks_in_forks(work, range(10), 3, lambda task, result: found.update({task: result}))
    assert sorted(found) == list(range(10))
    workers = {process for process, *_ in found.values()}
    assert len(workers) == 3
    assert os.getpid() not in workers
    assert {threads for _, threads, _ in found.values()} == {1}
    assert all(total == 64.0**5 + task for task, (*_, total) in found.items())
    assert not active_children()


def test_an_error_is_raised_where_the_work_was_asked_for() -> None:
    def work(task: int) -> int:
        if task == 1:
            raise UserError("not this one")
        time.sleep(60)
        return task

    began = time.monotonic()
    with pytest.raises(UserError, match="not this one"):
        run_tasks_in_forks(work, range(4), 2, lambda task, result: None)
    assert time.monotonic() - began < 30
    assert not active_children()


def test_a_copy_that_is_killed_is_an_error() -> None:
    def work(task: int) -> int:
        if task == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    with pytest.raises(UserError, match="ended with -9"):
        run_tasks_in_forks(work, range(4), 2, lambda task, result: None)
    assert not active_children()


def test_an_interrupt_ends_the_copies() -> None:
    def interrupt(task: int, result: int) -> None:
        raise KeyboardInterrupt

    def work(task: int) -> int:
        if task:
            time.sleep(60)
        return task

    with pytest.raises(KeyboardInterrupt):
        run_tasks_in_forks(work, range(4), 2, interrupt)
    assert not active_children()


def test_copies_do_not_outlive_the_process() -> None:
    code = r"""
import os, time
from nmt.compute.forks import run_tasks_in_forks
def work(task):
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(0.05)
    return task
run_tasks_in_forks(work, range(100_000), 2, lambda task, result: None)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        copies = {int(process.stdout.readline()) for _ in range(20)}
        process.kill()
    assert len(copies) == 2
    ends = time.monotonic() + 20
    while any(_runs(copy) for copy in copies):
        assert time.monotonic() < ends
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def test_a_process_with_other_threads_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])  # other tests may leave some behind
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
