"""Stopping when asked to, or when time is up: noted, and heeded between two steps or wherever that loses nothing."""

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from nmt.compute import distributed

Interruptible = Callable[[], AbstractContextManager[None]]
"""Makes a block that a stop request ends immediately; what the block had begun is discarded."""


class StopError(BaseException):
    """A signal has asked to leave a block. Not an `Exception`, which some library might take for its own."""


class StopRequest:
    """Whether a signal has asked this process to stop, or its time is up."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.late = False
        self._stoppable = False

    def note(self, number: int, _: FrameType | None) -> None:
        """Remember a signal. A second one of the kind that Ctrl-C sends ends the process where it is."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        self._leave()

    @contextmanager
    def late_after(self, seconds: float) -> Iterator[None]:
        """End what is stoppable in this block after so many seconds, with StopError; infinitely many are no limit."""
        before = signal.signal(signal.SIGALRM, self._note_late)
        if seconds < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))  # 0 would be no limit
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _note_late(self, _: int, __: FrameType | None) -> None:
        self.late = True
        self._leave()

    def _leave(self) -> None:
        if self._stoppable:
            self._stoppable = False  # a further signal must not disturb the leaving
            raise StopError

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """End this block on a signal or alarm, with StopError: only for what can be left half done and made again."""
        self._stoppable = True
        try:
            if self.signal is not None or self.late:
                raise StopError
            yield
        finally:
            self._stoppable = False

    @contextmanager
    def interruptible_together(self) -> Iterator[None]:
        """A stoppable block that each of several processes does by itself, and all leave where one of them does."""
        left = False
        try:
            with self.interruptible():
                yield
        except StopError:
            left = True
        if distributed.highest(left):
            raise StopError


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Note SIGTERM, SIGINT and SIGUSR1 (which Slurm may send before time is up) instead of dying of them.

    After an error, too: a launcher that sees one process fail ends the others, which are about to say what they met.
    """
    stop_request = StopRequest()
    before = {
        number: signal.signal(number, stop_request.note) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    }
    yield stop_request
    for number, handler in before.items():
        signal.signal(number, handler)
