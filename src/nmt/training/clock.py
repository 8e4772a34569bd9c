"""Time: what was spent on training, and what is left until this process must have ended."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nmt.compute.uptime import uptime

LEAVING_SECONDS = 5.0
"""What it takes to close files, join threads and end the process."""
DISK_BYTES_PER_SECOND = 100e6
"""A slow disk: what a checkpoint is expected to take before one was written."""


class Stopwatch:
    """Seconds since it was made, without those in which it was paused."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.paused = 0.0

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self.start - self.paused

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let the seconds in this block not count."""
        before = time.monotonic()
        yield
        self.paused += time.monotonic() - before


class Deadline:
    """When this process must have ended, counted from its start, and how long each kind of work takes at most."""

    def __init__(self, minutes: float, *, checkpoint_bytes: int) -> None:
        """A limit of 0 minutes is none."""
        self.limit = 60 * minutes
        self.longest = {"save": checkpoint_bytes / DISK_BYTES_PER_SECOND}

    @contextmanager
    def timing(self, work: str) -> Iterator[None]:
        """Time a kind of work, and remember it if none of its kind took longer; what was left midway does not count."""
        before = uptime()
        yield
        self.expect(work, uptime() - before)

    def expect(self, work: str, seconds: float) -> None:
        """Expect a kind of work to take at least so long."""
        self.longest[work] = max(self.longest.get(work, 0.0), seconds)

    def room(self) -> float:
        """Return the seconds that are left for work if everything is saved afterwards; below 0 when it is too late."""
        return self.limit - uptime() - self.longest["save"] - LEAVING_SECONDS

    def has_room_for(self, work: Sequence[str]) -> bool:
        """Tell whether these kinds of work fit in, each taking as long as it ever took."""
        return not self.limit or sum(self.longest.get(each, 0.0) for each in work) <= self.room()
