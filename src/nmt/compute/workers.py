"""Run tasks in parallel in threads on a CPU.

Threads that share one operation wait for each other at the end of every operation. Threads with tasks of their own wait
only once, at the end of all tasks; but they take turns at Python's lock.
"""

import ctypes
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS = 4
"""Most threads worth running in parallel: they take turns at Python's lock, and each needs memory of its own."""


class AbandonedError(SystemExit):
    """Raised in a thread whose results are no longer wanted."""


def in_parallel(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they finish; one worker is this thread.

    An error of the function is raised here. Close the iterator if you may leave it before its end: that stops tasks
    that are still running.
    """
    return _in_threads(function, tasks, workers) if workers > 1 else ((task, function(task)) for task in tasks)


def concurrent_workers(limit: int) -> int:
    """Return how many workers, at most `limit`, to run in parallel so that each gets the same number of threads."""
    threads = torch.get_num_threads()
    return max((count for count in range(1, 1 + min(MAX_WORKERS, limit)) if threads % count == 0), default=1)


def run_in_threads(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> list[R]:
    """Return the function's result for each task, in order, computed in this number of other threads."""
    with closing(_in_threads(lambda index: function(tasks[index]), range(len(tasks)), workers)) as finished:
        results = dict(finished)
    return [results[index] for index in range(len(tasks))]


def _in_threads(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
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
            results = {pool.submit(call, task): task for task in tasks}
            for done in as_completed(results):
                yield results[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for identity in list(running):  # an error at the next line of Python
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(identity), ctypes.py_object(AbandonedError))
            raise
