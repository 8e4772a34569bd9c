"""Stop on a signal: between two steps, or immediately in blocks that can be repeated later."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from nmt.compute import distributed

Interruptible = Callable[[], AbstractContextManager[None]]
"""Makes a block that a stop request ends immediately; its unfinished results are discarded."""


class StopError(BaseException):
    """Raised to leave a block because of a signal. Not an `Exception`, which libraries might catch."""


class StopRequest:
    """The signal that has asked this process to stop, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._stoppable = False

    def note(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: remember it, and leave an interruptible block. Exit immediately on a second Ctrl-C."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        if self._stoppable:
            self._stoppable = False  # a further signal must not disturb the cleanup
            raise StopError

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Leave this block with StopError on a signal; only for computations that can be repeated."""
        self._stoppable = True
        try:
            if self.signal is not None:
                raise StopError
            yield
        finally:
            self._stoppable = False

    @contextmanager
    def interruptible_together(self) -> Iterator[None]:
        """Leave this block with StopError in all processes if one of them gets a signal.

        The processes must not wait for each other inside the block.
        """
        stopped = False
        try:
            with self.interruptible():
                yield
        except StopError:
            stopped = True
        if distributed.highest(stopped):
            raise StopError


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Turn SIGTERM, SIGINT and SIGUSR1 (which Slurm can send before a time limit) into stop requests in this block.

    After an error in one of several processes, the handlers stay. A launcher that sees one process fail sends SIGTERM
    to the others, and these must survive it until they have reported their own errors.
    """
    stop_request = StopRequest()
    numbers = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1
    before = {number: signal.signal(number, stop_request.note) for number in numbers}
    failed = True
    try:
        yield stop_request
        failed = False
    finally:
        if not failed or distributed.world_size() == 1:
            for number, handler in before.items():
                signal.signal(number, handler)
