"""Run functions in helper processes, which never outlive the main process."""

import ctypes
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

from nmt.errors import UserError

R = TypeVar("R")

SPAWN = get_context("spawn")
"""Starts fresh processes. Forking a process that has threads, such as Arrow's, can deadlock."""
PR_SET_PDEATHSIG = 1
"""Linux's number of the request to be told of the parent's end."""


def end_with_parent() -> None:
    """End this process when its parent does, for whatever reason, and leave Ctrl-C to the parent.

    Linux kills this process then, whatever it does; but it does so as soon as the thread that has started this process
    ends. Elsewhere a thread waits for the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return
    if sys.platform != "linux":
        Thread(target=_exit_after, args=(parent,), daemon=True).start()
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:  # it has ended meanwhile
        os._exit(1)


def _exit_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def run_in_process(function: Callable[..., R], *args: Any) -> R:
    """Call a function in a new process, which can be killed at any time and whose memory is freed afterwards."""
    results: list[R] = list(map_in_processes(1, "helps this one", [args], _calling, function))
    return results[0]


def _calling(function: Callable[..., R]) -> Callable[[tuple[Any, ...]], R]:
    return lambda args: function(*args)


def map_in_processes(
    count: int, purpose: str, items: Iterable[Any], make: Callable[..., Callable[[Any], Any]], *args: Any
) -> Generator[Any]:
    """Yield a function's result for each item, in order, from `count` processes; only a few items are read ahead.

    Each process calls `make` with the arguments to get the function. Errors say the `purpose` of the processes, and an
    error or the end of this generator kills them.
    """
    waiting: deque[Future[Any]] = deque()
    pool = ProcessPoolExecutor(count, SPAWN, initializer=_prepare, initargs=(make, *args))
    try:
        for item in items:
            waiting.append(pool.submit(_apply, item))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException as error:
        for process in list((pool._processes or {}).values()):  # Python 3.14 has kill_workers
            process.kill()
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                f"a process that {purpose} was killed, perhaps because memory ran out: free some, or try "
                "runtime.workers=1"
            ) from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]


def _prepare(make: Callable[..., Callable[[Any], Any]], *args: Any) -> None:
    global _function  # noqa: PLW0603 (a process pool offers no other place for what each worker makes once)
    end_with_parent()
    _function = make(*args)


def _apply(item: Any) -> Any:
    return _function(item)
