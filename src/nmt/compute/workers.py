"""Run tasks in parallel in threads on a CPU.

Threads that share one operation wait for each other at the end of every operation. Threads with tasks of their own wait
only once, at the end of all tasks; but they take turns at Python's lock.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS = 4
"""Most threads worth running in parallel: they take turns at Python's lock, and each needs memory of its own."""


def concurrent_workers(limit: int) -> int:
    """Return how many workers, at most `limit`, to run in parallel so that each gets the same number of threads."""
    threads = torch.get_num_threads()
    return max((count for count in range(1, 1 + min(MAX_WORKERS, limit)) if threads % count == 0), default=1)


def in_parallel(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they finish; one worker is this thread.

    An error of the function is raised here. Close the iterator if you may leave it before its end: tasks that have not
    begun are then left out.
    """
    if workers <= 1:
        yield from ((task, function(task)) for task in tasks)
        return
    with _pool(workers) as pool:
        try:
            results = {pool.submit(function, task): task for task in tasks}
            yield from ((results[done], done.result()) for done in as_completed(results))
        finally:
            pool.shutdown(cancel_futures=True)


def run_in_threads(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> list[R]:
    """Return the function's result for each task, in order, computed in this number of other threads."""
    with _pool(workers) as pool:
        return list(pool.map(function, tasks))


def _pool(workers: int) -> ThreadPoolExecutor:
    """Return threads with equal shares of torch's threads."""
    share = max(1, torch.get_num_threads() // workers)
    return ThreadPoolExecutor(workers, "worker", initializer=partial(torch.set_num_threads, share))
