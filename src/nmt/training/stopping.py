"""Measure training time, and predict whether the next task ends in time, and at which step a run ends."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nmt.compute.uptime import uptime
from nmt.config.training import TrainingConfig

LEAVING_SECONDS = 5.0
"""Time to close files, join threads and end the process."""
DISK_BYTES_PER_SECOND = 100e6
"""The speed of a slow disk, used to estimate the time of the first checkpoint."""


class Stopwatch:
    """Counts the seconds since it was created, except while it is paused."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.paused = 0.0

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self.start - self.paused

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Do not count the seconds in this block, not even if an exception ends it."""
        before = time.monotonic()
        try:
            yield
        finally:
            self.paused += time.monotonic() - before


class Deadline:
    """The time limit of this process, counted from its start, and the longest time each kind of task has taken."""

    def __init__(self, minutes: float, *, checkpoint_bytes: int) -> None:
        """Set the limit; 0 minutes mean no limit."""
        self.limit = 60 * minutes
        self.longest = {"save": checkpoint_bytes / DISK_BYTES_PER_SECOND}

    @contextmanager
    def timing(self, task: str) -> Iterator[None]:
        """Time a task; one that ends with an exception does not count."""
        before = uptime()
        yield
        self.expect(task, uptime() - before)

    def expect(self, task: str, seconds: float) -> None:
        """Expect a task to take at least this long."""
        self.longest[task] = max(self.longest.get(task, 0.0), seconds)

    def seconds_left(self) -> float:
        """Return the seconds left before the final save must begin; negative if it is too late."""
        return self.limit - uptime() - self.longest["save"] - LEAVING_SECONDS

    def has_time_for(self, tasks: Sequence[str]) -> bool:
        """Return whether there is time for these tasks if each takes its longest time so far."""
        return not self.limit or sum(self.longest.get(task, 0.0) for task in tasks) <= self.seconds_left()


def reachable_step(step: int, seconds: float, config: TrainingConfig) -> int:
    """Return the last step of a run: that of `training.steps`, or an earlier one at which its minutes end.

    If the run goes on, it makes at least one more step.

    Args:
        step: The steps so far.
        seconds: The training time so far, from which the speed follows.
        config: The steps, and the limit `training.max_training_minutes`.
    """
    limit = 60 * config.max_training_minutes
    if not (limit and step and seconds > 0):
        return config.steps
    return min(config.steps, max(step + 1, int(step * limit / seconds)))
