"""Parts of a batch side by side on a CPU: each thread takes one through the model and back, by itself."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from nmt.config.schema import TrainingConfig
from nmt.machine import Machine

T = TypeVar("T")

LEAST_TOKENS = 1024
"""Tokens a side below which a part is too small to be worth the copies of weights and gradient that it takes."""
MOST = 4
"""Parts at once, each of which keeps a gradient of its own."""


class LeftError(BaseException):
    """The thread that this is raised in is to leave its part."""


def parts_at_once(config: TrainingConfig, machine: Machine, processes: int = 1) -> int:
    """Into how many parts one of so many processes divides what it takes at once.

    Threads that share every operation wait for each other at the end of each; those that have a part to themselves
    wait once a step. Several processes on a CPU, and a GPU, have their parts as it is.
    """
    if machine.device.type != "cpu" or processes > 1:
        return 1
    threads, tokens = torch.get_num_threads(), min(config.device_tokens or config.batch_tokens, config.batch_tokens)
    counts = range(1, 1 + min(MOST, tokens // LEAST_TOKENS))
    return max((count for count in counts if threads % count == 0), default=1)


def side_by_side(work: Callable[[int], T], parts: Sequence[int]) -> list[T]:
    """What the work gives for each of the parts, done in a thread each; left at once where this thread is stopped."""
    done: dict[int, T | Exception] = {}
    own = max(1, torch.get_num_threads() // len(parts))

    def run(part: int) -> None:
        try:
            torch.set_num_threads(own)  # holds for this thread
            done[part] = work(part)
        except LeftError:
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


def _join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _leave(thread: threading.Thread) -> None:
    """Raise LeftError in a thread, at its next line of Python; nothing happens where it has ended."""
    identity, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LeftError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, error)
