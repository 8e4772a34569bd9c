"""Stopping when asked to: a signal is noted, and heeded between two steps."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Asked:
    """Whether a signal has asked this process to stop."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def note(self, number: int, _: FrameType | None) -> None:
        """Remember a signal. A second one of the kind that Ctrl-C sends does not wait for the step to end."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)


@contextmanager
def stop_signals() -> Iterator[Asked]:
    """Note SIGTERM, SIGINT and SIGUSR1 (which Slurm may send before time is up) instead of dying of them."""
    asked = Asked()
    before = {number: signal.signal(number, asked.note) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
