"""Why training ends, and how processes agree on it."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.training import TrainingConfig


class Ending(IntEnum):
    """Why training ended. If there are several reasons, or processes have different ones, the highest counts."""

    DONE = 1
    """The last step is done."""
    NO_GAIN = 2
    """No new best on the development set for `training.patience` validations."""
    BUDGET = 3
    """`training.max_training_minutes` are used up."""
    SIGNAL = 4
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
        case Ending.SIGNAL:
            return f"stopped {at} because a signal asked for it; everything is saved, {resume}"


class Decision(NamedTuple):
    """What the processes agree on: all of them must end at the same step, and have the same learning rate."""

    ending: int = 0
    """The value of an Ending, or 0 to continue."""
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
        if earlier is None or not earlier.ending:  # otherwise they act together now
            self._sent = distributed.highest_of_each(own)
        return earlier
