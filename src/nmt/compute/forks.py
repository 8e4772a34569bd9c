"""Run tasks in parallel in copies of this process, each on one core, for tasks that run mostly in Python.

Threads take turns at Python's lock, so tasks made of many short operations gain nothing from several threads. A copy is
made by fork: it shares all memory of this process, and starts within milliseconds.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar, cast

import torch

from nmt.compute.processes import end_with_parent
from nmt.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

PROGRESS_THREAD = "TMonitor"
"""The class of tqdm's thread, which redraws progress bars: the only thread whose locks a copy never needs."""


def can_fork() -> bool:
    """Return whether a copy of this process would work: a lock held by another thread stays locked in the copy."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    alone = all(type(thread).__name__ == PROGRESS_THREAD for thread in others)
    return sys.platform == "linux" and alone and threading.current_thread() is threading.main_thread()


def run_tasks_in_forks(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they finish; copies take the tasks in turn.

    An error is raised here. After an error or an interrupt, or if the iterator is closed, the copies are killed.
    """
    context = get_context("fork")
    with ExitStack() as cleanup:
        readers: list[Connection] = []
        running: dict[Connection, BaseProcess] = {}
        for worker in range(workers):
            reader, writer = context.Pipe(duplex=False)
            readers.append(cleanup.enter_context(reader))
            indices = range(worker, len(tasks), workers)
            process = context.Process(
                target=_run_share, args=(function, tasks, indices, writer, list(readers)), daemon=True
            )
            process.start()
            cleanup.callback(_kill, process)
            writer.close()
            running[reader] = process
        while running:
            for reader in cast(list[Connection], wait(list(running))):
                try:
                    outcome = reader.recv()
                except EOFError:
                    _check_exit(running.pop(reader))
                    continue
                if isinstance(outcome, Exception):
                    raise outcome
                index, result = outcome
                yield tasks[index], result


def _run_share(
    function: Callable[[T], R],
    tasks: Sequence[T],
    indices: Sequence[int],
    writer: Connection,
    readers: Sequence[Connection],
) -> None:
    """Run this copy's share of the tasks, and send their results; exit if the parent process has ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent handles it
    end_with_parent()  # otherwise this copy would keep the parent's connections to other processes open
    for reader in readers:  # so that writing fails once the parent has ended
        reader.close()
    torch.set_num_threads(1)
    try:
        for index in indices:
            writer.send((index, function(tasks[index])))
    except BrokenPipeError:
        os._exit(1)
    except Exception as error:  # any error: it is raised where the results are used
        writer.send(error)


def _check_exit(process: BaseProcess) -> None:
    """Raise an error if a copy ended before its tasks were done."""
    process.join()
    if process.exitcode:
        raise UserError(
            f"a worker process ended with {process.exitcode}, perhaps because memory ran out: "
            "set runtime.threads=1 to run without such processes"
        )


def _kill(process: BaseProcess) -> None:
    process.kill()
    process.join()
