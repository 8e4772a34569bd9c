"""When to stop and when to save: what each process wants, its time limit, and what all processes agree on."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.training import TrainingConfig
from nmt.launched import uptime

LEAVING_SECONDS = 5.0
"""Time to close files, join threads and end the process."""
DISK_BYTES_PER_SECOND = 100e6
"""The speed of a slow disk, used to estimate the time of the first checkpoint."""


class Ending(IntEnum):
    """Why training ended. If there are several reasons, or processes have different ones, the highest counts."""

    DONE = 1
    """The last step is done."""
    NO_GAIN = 2
    """No new best on the development set for `training.patience` validations."""
    BUDGET = 3
    """`training.max_training_minutes` are used up."""
    TIME = 4
    """`training.max_minutes` leave no time for another step or validation."""
    SIGNAL = 5
    """A signal asked the process to stop."""


def ending_message(ending: Ending, step: int, config: TrainingConfig) -> str:
    """Return why training ended and how to continue."""
    at, resume = f"at step {step} of {config.steps}", "the same command goes on from here"
    match ending:
        case Ending.DONE:
            return f"finished {at}"
        case Ending.NO_GAIN:
            return f"stopped early {at}: {config.patience} validations brought no new best"
        case Ending.BUDGET:
            limit = f"training.max_training_minutes={config.max_training_minutes:g}"
            return f"stopped {at}: the run has trained for {limit}; if you raise it, {resume}"
        case Ending.TIME:
            limit = f"training.max_minutes={config.max_minutes:g}"
            passed = f"{uptime() / 60:.2f} minutes after the start"
            return f"stopped {at}, {passed}: within {limit} there is no time for more; {resume}"
        case Ending.SIGNAL:
            return f"stopped {at} because a signal asked for it; everything is saved, {resume}"


class Saving(IntEnum):
    """Why a checkpoint is due. If there are several reasons, or processes have different ones, the highest counts."""

    NONE = 0
    BEST = 1
    """The step is the best so far on the development set."""
    SCHEDULED = 2
    """The settings ask for it."""


class Decision(NamedTuple):
    """What the processes agree on: all of them must end, or save, at the same step."""

    ending: int = 0
    """The value of an Ending, or 0 to continue."""
    saving: int = Saving.NONE
    """The value of a Saving."""
    last_step: int = 0
    """The step at which the run ends at its speed so far, which determines the learning rate."""


class Agreement:
    """Finds the highest decision of all processes.

    To wait for the slowest process after every step would cost a large part of a short one. So a decision is sent
    while the next step is computed, and read after that step. Before a validation or a save, and after a validation,
    the processes wait for each other, because they act together then.
    """

    def __init__(self) -> None:
        self._sent: Callable[[], Sequence[int]] | None = None

    def reach(self, own: Decision, *, wait: bool) -> Decision | None:
        """Return what all processes decide together: now if they `wait`, else after the step before, if they did."""
        sent, self._sent = self._sent, None
        earlier = None if sent is None else Decision(*sent())
        if wait or distributed.world_size() == 1:
            return Decision(*distributed.highest_of_each(own)())
        if earlier is None or not (earlier.ending or earlier.saving):  # otherwise they act together now
            self._sent = distributed.highest_of_each(own)
        return earlier


class Stopwatch:
    """Counts the seconds since it was created, except while it is paused."""

    def __init__(self, seconds: float = 0.0) -> None:
        """Begin with a number of seconds."""
        self._zero = time.monotonic() - seconds

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self._zero

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Do not count the seconds in this block, not even if an exception ends it."""
        before = time.monotonic()
        try:
            yield
        finally:
            self._zero += time.monotonic() - before


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
