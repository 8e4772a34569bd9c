"""Work on several things side by side on a CPU, each in a thread of its own.

Threads that share every operation wait for each other at the end of each; those that have something to themselves
wait once, when all is done.
"""

import ctypes
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch

T = TypeVar("T")

MOST = 4
"""Threads at once that are worth it: they take turns at Python's lock, and each needs memory of its own."""


class AbandonedError(BaseException):
    """The thread that this is raised in is to leave what it works on."""


def concurrent_workers(most: int) -> int:
    """How many things, `most` at most, are worked on at once, such that each gets the same share of the threads."""
    threads = torch.get_num_threads()
    return max((count for count in range(1, 1 + min(MOST, most)) if threads % count == 0), default=1)


def run_in_threads(work: Callable[[int], T], parts: Sequence[int]) -> list[T]:
    """What the work gives for each of the parts, done in a thread each; left at once where this thread is stopped."""
    done: dict[int, T | Exception] = {}
    own = max(1, torch.get_num_threads() // len(parts))

    def run(part: int) -> None:
        try:
            torch.set_num_threads(own)  # holds for this thread
            done[part] = work(part)
        except AbandonedError:
            pass
        except Exception as error:  # whatever it is, it is raised where the work was asked for
            done[part] = error

    threads = [threading.Thread(target=run, args=(part,), name=f"part {part}") for part in parts]
    for thread in threads:
        thread.start()
    try:
        _join(threads)
    except BaseException:
        for thread in threads:
            _leave(thread)
        _join(threads)
        raise
    results = []
    for part in parts:
        result = done[part]
        if isinstance(result, Exception):
            raise result
        results.append(result)
    return results


def run_tasks_in_threads(work: Callable[[T], None], tasks: Iterable[T], workers: int) -> None:
    """Do each of the tasks once, by whichever of the workers is free; after an error none is begun."""
    waiting = iter(list(tasks))  # an iterator of a list may be shared by threads

    def take(_worker: int) -> None:
        try:
            for task in waiting:
                work(task)
        except BaseException:
            for _ in waiting:
                pass
            raise

    if workers == 1:
        take(0)
    else:
        run_in_threads(take, range(workers))


def _join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _leave(thread: threading.Thread) -> None:
    """Raise LeftError in a thread, at its next line of Python; nothing happens where it has ended."""
    identity, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(AbandonedError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, error)
