"""Run tasks in parallel on a CPU: in threads, or in forked copies of this process.

Threads that share one operation wait for each other at the end of every operation. Threads with tasks of their own wait
only once, at the end of all tasks; but they take turns at Python's lock, so tasks made of many short operations gain
nothing from them. A forked copy shares all memory of this process, has its own lock, and starts within milliseconds.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal, TypeVar

import torch

from nmt.compute.processes import apply, prepare_process, process_pool
from nmt.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS = 4
"""Most threads worth running in parallel: they take turns at Python's lock, and each needs memory of its own."""
PROGRESS_THREAD = "TMonitor"
"""The class of tqdm's thread, which redraws progress bars: the only thread whose locks a copy never needs."""


class AbandonedError(SystemExit):
    """Raised in a thread whose results are no longer wanted."""


@dataclass(frozen=True, slots=True)
class Workers:
    """A way to run tasks."""

    kind: Literal["serial", "threads", "forks"] = "serial"
    """Threads suit tasks made of large operations, and forks those of small ones; see `can_fork`."""
    count: int = 1

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Generator[tuple[T, R]]:
        """Yield each task with its result, in the order in which they finish.

        An error of the function is raised here. Close the iterator if you may leave it before its end: that stops
        tasks that are still running.
        """
        if self.kind == "threads":
            return _run_in_threads(function, tasks, self.count)
        if self.kind == "forks":
            return _run_in_forks(function, tasks, self.count)
        return ((task, function(task)) for task in tasks)


def concurrent_workers(limit: int) -> int:
    """Return how many workers, at most `limit`, to run in parallel so that each gets the same number of threads."""
    threads = torch.get_num_threads()
    return max((count for count in range(1, 1 + min(MAX_WORKERS, limit)) if threads % count == 0), default=1)


def can_fork() -> bool:
    """Return whether a copy of this process would work: a lock held by another thread stays locked in the copy."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    alone = all(type(thread).__name__ == PROGRESS_THREAD for thread in others)
    return sys.platform == "linux" and alone and threading.current_thread() is threading.main_thread()


def run_in_threads(function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
    """Return the function's result for each task, in order; all run simultaneously."""
    with closing(_run_in_threads(lambda index: function(tasks[index]), range(len(tasks)), len(tasks))) as finished:
        results = dict(finished)
    return [results[index] for index in range(len(tasks))]


def run_all_in_threads(function: Callable[[T], object], tasks: Sequence[T]) -> None:
    """Call the function with each task: in several threads if this process has several, else in this one."""
    workers = concurrent_workers(len(tasks))
    with closing(Workers("threads" if workers > 1 else "serial", workers).run(function, tasks)) as finished:
        for _ in finished:
            pass


def _run_in_threads(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Run tasks in threads with equal shares of torch's threads; an interrupt or an error abandons running tasks."""
    running: set[int] = set()

    def call(task: T) -> R:
        running.add(threading.get_ident())
        try:
            return function(task)
        finally:
            running.discard(threading.get_ident())

    share = max(1, torch.get_num_threads() // workers)
    with ThreadPoolExecutor(workers, "worker", initializer=partial(torch.set_num_threads, share)) as pool:
        try:
            yield from _results(pool, call, tasks)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for identity in list(running):  # an error at the next line of Python
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(identity), ctypes.py_object(AbandonedError))
            raise


def _run_in_forks(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Run tasks in copies of this process with one thread each; an interrupt or an error kills them."""
    try:
        with process_pool(workers, get_context("fork"), partial(_begin_copy, function)) as pool:
            yield from _results(pool, apply, tasks)
    except BrokenProcessPool as error:
        raise UserError(
            "a worker process was killed, perhaps because memory ran out: set runtime.threads=1 to run without such "
            "processes"
        ) from error


def _results(pool: Executor, function: Callable[[T], R], tasks: Sequence[T]) -> Generator[tuple[T, R]]:
    running = {pool.submit(function, task): task for task in tasks}
    for done in as_completed(running):
        yield running[done], done.result()


def _begin_copy(function: Callable[[Any], Any]) -> None:
    """Take the function, which need not be one that can be sent; the copy ends with the parent.

    Otherwise it would keep the parent's connections to other processes open.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent handles it
    prepare_process(lambda: function)
    torch.set_num_threads(1)
