"""What the processes of a run decide together after a step: whether to save, and whether to end."""

from enum import IntEnum
from typing import NamedTuple


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


class Saving(IntEnum):
    """Why a checkpoint is due. If there are several reasons, or processes have different ones, the highest counts."""

    NONE = 0
    BEST = 1
    """The step is the best so far on the development set."""
    SCHEDULED = 2
    """The settings ask for it."""


class Decision(NamedTuple):
    """What the processes agree on: all of them must end, or save, at the same step."""

    ending: int
    """The value of an Ending, or 0 to continue."""
    saving: int
    """The value of a Saving."""
    step_microseconds: int
    """The mean time per step since the last agreement, which determines the next one."""
    last_step: int
    """The step at which the run ends at its speed so far, which determines the learning rate."""
