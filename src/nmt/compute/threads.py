"""Run tasks in parallel on CPU threads.

Threads that share one operation wait for each other at the end of every operation. Threads with tasks of their own wait
only once, at the end of all tasks.
"""

import ctypes
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from queue import SimpleQueue
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

MAX_WORKERS = 4
"""Most threads worth running in parallel: they take turns at Python's lock, and each needs memory of its own."""


class AbandonedError(SystemExit):
    """Raised in a thread whose results are no longer wanted. Threads end silently on a SystemExit."""


def concurrent_workers(limit: int) -> int:
    """Return how many workers, at most `limit`, to run in parallel so that each gets the same number of threads."""
    threads = torch.get_num_threads()
    return max((count for count in range(1, 1 + min(MAX_WORKERS, limit)) if threads % count == 0), default=1)


def run_in_threads(function: Callable[[T], R], arguments: Sequence[T]) -> list[R]:
    """Return the function's result for each argument, in order; all calls run simultaneously."""
    calls = list(enumerate(arguments))
    with closing(run_tasks_in_threads(lambda call: function(call[1]), calls, len(calls))) as finished:
        results = {index: result for (index, _), result in finished}
    return [results[index] for index in range(len(calls))]


def run_all_in_threads(function: Callable[[T], object], tasks: Sequence[T]) -> None:
    """Call the function with each task: in several threads if this process has several, else in this one."""
    workers = concurrent_workers(len(tasks))
    if workers == 1:
        for task in tasks:
            function(task)
        return
    with closing(run_tasks_in_threads(function, tasks, workers)) as finished:
        for _ in finished:
            pass


def run_tasks_in_threads(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they finish.

    Every worker takes the next task as soon as it is free, with an equal share of torch's threads. An error is raised
    here. After an error or an interrupt, or if the iterator is closed, running tasks are abandoned and no other begins.
    """
    waiting = iter(list(tasks))  # threads can share the iterator of a list
    outcomes: SimpleQueue[tuple[T, R] | BaseException | None] = SimpleQueue()
    threads_per_worker = max(1, torch.get_num_threads() // workers)

    def run_worker() -> None:
        torch.set_num_threads(threads_per_worker)  # for this thread only
        try:
            for task in waiting:
                outcomes.put((task, function(task)))
            outcomes.put(None)
        except AbandonedError:
            pass
        except BaseException as error:  # any error: it is raised where the results are used
            _exhaust(waiting)
            outcomes.put(error)

    threads = [threading.Thread(target=run_worker, name=f"worker {number}") for number in range(workers)]
    try:
        for thread in threads:
            thread.start()
        yield from _until_all_end(outcomes, workers)
    except BaseException:
        _exhaust(waiting)
        for thread in threads:
            _abandon(thread)
        raise
    finally:
        for thread in threads:
            if thread.ident:  # an interrupt may come before all have started
                thread.join()


def _until_all_end(outcomes: "SimpleQueue[tuple[T, R] | BaseException | None]", workers: int) -> Iterator[tuple[T, R]]:
    """Yield results until each worker has put None into the queue; raise an error that comes instead."""
    while workers:
        outcome = outcomes.get()
        if outcome is None:
            workers -= 1
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            yield outcome


def _exhaust(iterator: Iterator[object]) -> None:
    for _ in iterator:
        pass


def _abandon(thread: threading.Thread) -> None:
    """Raise AbandonedError in a thread, at its next line of Python; do nothing if it has ended."""
    identity, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(AbandonedError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, error)
