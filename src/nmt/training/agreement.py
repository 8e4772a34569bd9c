"""The steps after which the processes of a run agree on whether to go on."""

from nmt.compute import distributed

AGREEMENT_SECONDS = 0.5
"""Several processes train for about this long between two agreements, so they obey a signal that soon."""


class AgreementSchedule:
    """Decides after which steps the processes agree; a single process decides after every step.

    To agree, every process waits for the slowest one, which would cost a large part of a step of a few milliseconds.
    Several processes therefore agree only after as many steps as take about AGREEMENT_SECONDS.

    No process can wait for an agreement that another one leaves out. The next agreement follows from the step of the
    last one, the number of steps before it, and the slowest process's time per step, which was agreed on with it. All
    of these are the same in all processes, and so is the first agreement, after the first step. The loop agrees in
    addition after validations and before validations and saves, whose steps follow from the settings and from what was
    agreed on or reduced over all processes before.
    """

    def __init__(self, step: int, seconds: float) -> None:
        """Begin at a step, after this many seconds of training."""
        self._step, self._seconds = step, seconds
        self._interval = 1

    def is_due(self, step: int) -> bool:
        """Return whether the processes agree after this step even if nothing happens there."""
        return distributed.world_size() == 1 or step >= self._step + self._interval

    def step_microseconds(self, step: int, seconds: float) -> int:
        """Return this process's mean time per step since the last agreement; 0 if it made no step."""
        steps = step - self._step
        return round(1e6 * (seconds - self._seconds) / steps) if steps else 0

    def plan_next(self, step: int, seconds: float, step_microseconds: int) -> None:
        """Plan the next agreement, given the step of this one and the slowest process's time per step.

        The interval at most doubles, and only after a whole one: the first steps on a GPU seem short, because the
        process does not wait for the device.
        """
        steps = step - self._step
        if steps:
            longest = 2 * self._interval if steps >= self._interval else self._interval
            self._interval = max(1, min(longest, int(1e6 * AGREEMENT_SECONDS) // max(1, step_microseconds)))
        self._step, self._seconds = step, seconds
