"""Work done in copies of this process, each with a core to itself: for work that is mostly Python's own.

Threads take turns at Python's lock, so work made of many short operations gains nothing from several. A copy is made by
fork: it has all that this process holds, in the same memory, and costs milliseconds.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar, cast

import torch

from nmt.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

MONITOR = "TMonitor"
"""The thread that redraws progress bars: the only one whose locks a copy can do without."""


def can_fork() -> bool:
    """Whether a copy of this process could work: what other threads have locked, it would find locked for ever."""
    others = [each for each in threading.enumerate() if each is not threading.main_thread()]
    alone = all(type(each).__name__ == MONITOR for each in others)
    return sys.platform == "linux" and alone and threading.current_thread() is threading.main_thread()


def run_tasks_in_forks(
    work: Callable[[T], R], tasks: Sequence[T], processes: int, take: Callable[[T, R], None]
) -> None:
    """Do each of the tasks in one of the copies, which take turns, and hand what they give to `take` as it comes."""
    context = get_context("fork")
    with ExitStack() as ended:
        readers: list[Connection] = []
        owners: dict[Connection, BaseProcess] = {}
        for copy in range(processes):
            reader, writer = context.Pipe(duplex=False)
            readers.append(ended.enter_context(reader))
            own = range(copy, len(tasks), processes)
            process = context.Process(target=_work, args=(work, tasks, own, writer, list(readers)), daemon=True)
            process.start()
            ended.callback(_end, process)
            writer.close()
            owners[reader] = process
        while owners:
            for reader in cast(list[Connection], wait(list(owners))):
                try:
                    found = reader.recv()
                except EOFError:
                    _check(owners.pop(reader))
                    continue
                if isinstance(found, Exception):
                    raise found
                index, result = found
                take(tasks[index], result)


def _work(
    work: Callable[[T], R], tasks: Sequence[T], own: Sequence[int], writer: Connection, readers: Sequence[Connection]
) -> None:
    """What a copy does, until its tasks are done or nobody listens."""
    for each in (signal.SIGINT, signal.SIGTERM):  # the process that it is a copy of answers for both
        signal.signal(each, signal.SIG_DFL)
    for reader in readers:  # so that writing fails once that process has gone
        reader.close()
    torch.set_num_threads(1)
    try:
        for index in own:
            writer.send((index, work(tasks[index])))
    except BrokenPipeError:
        os._exit(1)
    except Exception as error:  # whatever it is, it is raised where the work was asked for
        writer.send(error)


def _check(process: BaseProcess) -> None:
    """Complain of a copy that has ended before its time."""
    process.join()
    if process.exitcode:
        raise UserError(
            f"a process that this one works with ended with {process.exitcode}, which may be for lack of memory: "
            "set runtime.threads=1 to work without"
        )


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()
