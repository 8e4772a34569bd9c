"""What a run has shown so far: its losses by step, and what the schedule of its rate has in store."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.runs.metrics import MetricsEvent

Array = npt.NDArray[np.float64]

GRID = 250
"""The largest number of steps at which the rate is computed; between them it is interpolated."""
SLOPE_BEGINS = 0.5
"""The share of the steps so far after which losses count for the slope."""
VALIDATION_WEIGHT = 3.0
"""The weight of a validation in the slope, compared with a log line of training."""
MAX_SLOPE = 1.5
"""Slopes are limited to the range from zero to this, because few noisy losses can have any."""


class Point(NamedTuple):
    """A loss."""

    step: int
    loss: float


class Rates:
    """The learning rate as a fraction of its peak at each step up to the end, and the progress that it allows.

    Progress is the sum of the square roots of the fractions: with a lower rate a step achieves less, but not in
    proportion. The square root fits the earlier runs better than the rate itself and than the number of steps.
    """

    def __init__(self, steps: int, warmup_steps: int, fraction: Callable[[int], float], shrinking: float = 0.0) -> None:
        """Take the share of the peak of each step, and the share of the weights that decays in the step of the peak."""
        self.peak_step = min(warmup_steps, steps)
        """The step with the highest rate, which ends the warmup."""
        self._shrinking = shrinking
        self._steps = np.unique([*np.linspace(1, steps, min(steps, GRID)).round(), self.peak_step])
        self._fractions = np.array([fraction(int(step)) for step in self._steps])
        widths = np.diff(self._steps, prepend=0.0)
        roots = np.sqrt(self._fractions)
        middles = (roots + np.concatenate([roots[:1], roots[:-1]])) / 2
        self._progress = np.cumsum(widths * middles)

    def fraction(self, step: float) -> float:
        """Return the rate of a step as a fraction of the peak."""
        return float(np.interp(step, self._steps, self._fractions))

    def restlessness(self, step: float) -> float:
        """Return what the relative change of weights in a step is proportional to, if weight decay limits their size.

        Weights that shrink as fast as updates make them grow change by the square root of the share that decays.
        """
        return math.sqrt(self._shrinking * self.fraction(step))

    def progress(self, step: float) -> float:
        """Return the progress up to a step."""
        return float(np.interp(step, [0.0, *self._steps], [0.0, *self._progress]))


@dataclass(frozen=True, slots=True)
class Curve:
    """The losses of a run so far."""

    valid: Sequence[Point]
    """The development losses, in the order of the steps."""
    train: Sequence[Point]
    """The training losses, each the mean of the steps since the point before."""
    passes: float = 0.0
    """Passes over the training text so far, at least."""


def curve_of(events: Sequence[MetricsEvent], figure: str) -> Curve:
    """Return the curve of a loss in the events of a run; losses that are not finite are left out."""
    points: dict[str, list[Point]] = {"valid": [], "train": []}
    passes = 0.0
    for event in events:
        loss = event.number(figure)
        if event.event in points and loss is not None and math.isfinite(loss):
            points[event.event].append(Point(event.step, loss))
        passes = max(passes, event.number("epoch") or 0.0)
    return Curve(points["valid"], points["train"], passes)


def smoothing_floor(vocabulary: int, smoothing: float) -> float:
    """Return the smoothed loss of a perfect model: the entropy of a smoothed label."""
    if not smoothing:
        return 0.0
    return -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(smoothing / vocabulary)
