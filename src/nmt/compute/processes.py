"""Processes that help the main one, and never outlive it."""

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from nmt.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")

SPAWN = get_context("spawn")
"""Fresh processes: forking one that has threads, as Arrow's does, can lock up."""


def follow_parent() -> None:
    """Leave with the parent, however it ends, and let it alone answer Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_after, args=(parent,), daemon=True).start()


def _leave_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def run_in_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a process of its own, which can be stopped at once and gives its memory back."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_call, args=(sender, function, args, kwargs), daemon=True)
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError:
        process.join()
        raise UserError(
            f"a helping process ended early (code {process.exitcode}), perhaps for want of memory: "
            "free some, or lower tokenizer.training_sentences."
        ) from None
    finally:
        process.terminate()
        process.join()
    if isinstance(outcome, Exception):
        raise outcome
    result: R = outcome
    return result


def _call(sender: Connection, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    follow_parent()
    try:
        outcome = function(*args, **kwargs)
    except Exception as error:  # whatever it is, it is raised again in the process that asked
        outcome = error
    sender.send(outcome)
