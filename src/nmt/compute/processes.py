"""Run functions in helper processes, which never outlive the main process."""

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
"""Starts fresh processes. Forking a process that has threads, such as Arrow's, can deadlock."""


def follow_parent() -> None:
    """Exit when the parent process ends, for whatever reason, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def run_in_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a new process, which can be killed at any time and whose memory is freed afterwards."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_call, args=(sender, function, args, kwargs), daemon=True)
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError:
        process.join()
        raise UserError(
            f"a helper process ended early (code {process.exitcode}), perhaps because memory ran out: "
            "free some memory, or lower tokenizer.training_sentences"
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
    except Exception as error:  # any error: it is raised again in the parent
        outcome = error
    sender.send(outcome)
