"""Interrupt a block of code that takes too long."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTimeError(Exception):
    """Raised in a block whose time limit has passed."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise an OutOfTimeError in the block after this time; at the next line of Python if it is inside a library.

    Only the main thread of a program can be interrupted; in others, and on systems without timers, the block runs on.
    """
    if seconds <= 0:
        raise OutOfTimeError
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    started = time.monotonic()
    previous_handler = signal.signal(signal.SIGALRM, _raise)
    previous_seconds, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
        if previous_seconds:  # a timer of the caller goes on
            left = previous_seconds - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), interval)


def _raise(number: int, frame: FrameType | None) -> None:
    raise OutOfTimeError
