"""Extrapolate a learning curve to the end of the run, with coefficients that earlier runs give.

Above a floor, the loss falls as a power of the progress (`Rates.progress`), and falls further while the rate decays:

    log((loss at the end - floor) / (loss now - floor))
        = -d log(progress at the end / progress now)
          - (g (rate now - rate at the end) + h (restlessness now - restlessness at the end)) / (loss now - floor)

The exponent d depends on the slope of the run so far and on how near to the floor it is, and is smaller for a run that
repeats its text. Weight decay makes a run restless: its loss falls late, when the rate does. What a falling rate takes
from the loss is about the same number of nats for all losses, so it is divided by the distance from the floor.
"""

import math
from typing import NamedTuple

import numpy as np

from nmt.features.forecast.curve import (
    MAX_SLOPE,
    SLOPE_BEGINS,
    VALIDATION_WEIGHT,
    Array,
    Curve,
    Point,
    Rates,
)

FLOOR_NATS = 1.0
"""The loss of the text itself, in nats per word piece, above the floor of the smoothing."""
USUAL_SLOPE = 0.25
"""The slope of a run that has too few losses to have its own."""
LEVELS = (0.0, 1.5)
"""The range of the logarithm of the distance from the floor; beyond it, the earlier runs teach nothing."""
MIN_ABOVE = 0.05
"""The smallest distance from the floor, in nats: a loss may come near the floor, or be below it."""
NEAREST = 0.2
"""The smallest distance from the floor, in nats, at which a run can be forecast: the effects of the rate are divided by
the distance."""
FEATURES = ("horizon", "decay", "slope", "repeats", "level", "restlessness")
"""What a change depends on: the names of the features of a situation."""
RIDGE = 0.02
"""The penalty of large coefficients."""
SMALLEST_SQUARE = 1e-4
"""What is added to the mean square of a feature, which no run may have."""


class Situation(NamedTuple):
    """A run at a validation, as far as its forecast depends on it."""

    loss: float
    floor: float
    features: Array
    """What is multiplied by the coefficients."""

    @property
    def can_be_extrapolated(self) -> bool:
        """Whether the loss is far enough from the floor; that of very regular text soon is not."""
        return self.loss - self.floor >= NEAREST

    def loss_after(self, change: float) -> float:
        """Return the loss whose distance from the floor has changed by a logarithm."""
        return self.floor + max(MIN_ABOVE, self.loss - self.floor) * math.exp(change)

    def change_to(self, loss: float) -> float:
        """Return the logarithm of the change to another loss: the inverse of `loss_after`."""
        return math.log(max(MIN_ABOVE, loss - self.floor) / max(MIN_ABOVE, self.loss - self.floor))


def situation(curve: Curve, rates: Rates, end: float, floor: float) -> Situation:
    """Return the situation at the last validation of a curve, for a forecast of the step `end`."""
    step, loss = curve.valid[-1]
    horizon = math.log(rates.progress(end) / rates.progress(step))
    decay = rates.fraction(step) - rates.fraction(end)
    slope = _slope(curve, rates, floor + FLOOR_NATS)
    repeats = math.log1p(curve.passes * end / step)
    above = loss - floor - FLOOR_NATS
    level = min(LEVELS[1], max(LEVELS[0], math.log(max(MIN_ABOVE, above))))
    restlessness = rates.restlessness(step) - rates.restlessness(end)
    of_slope = [horizon * each for each in (slope - USUAL_SLOPE, repeats, level - 1)]
    distance = max(NEAREST, above)
    features = np.array([horizon, decay / distance, *of_slope, restlessness / distance])
    return Situation(loss, floor + FLOOR_NATS, features)


def _slope(curve: Curve, rates: Rates, floor: float) -> float:
    """Return the common slope of validations and log lines: minus d log(loss - floor) / d log(progress)."""
    last = curve.valid[-1].step
    first = max(rates.peak_step, SLOPE_BEGINS * last)
    steps = [0, *(each.step for each in curve.train)]
    middles = [Point((before + each.step) // 2, each.loss) for before, each in zip(steps, curve.train, strict=False)]
    products = squares = 0.0
    for points, weight in ((curve.valid, VALIDATION_WEIGHT), (middles, 1.0)):
        used = [each for each in points if first <= each.step <= last]
        if len(used) < 2:
            continue
        x = np.log([rates.progress(each.step) for each in used])
        y = np.log([max(MIN_ABOVE, each.loss - floor) for each in used])
        products += weight * float(((x - x.mean()) * (y - y.mean())).sum())
        squares += weight * float(((x - x.mean()) ** 2).sum())
    return min(MAX_SLOPE, max(0.0, -products / squares)) if squares else USUAL_SLOPE


def fit(matrix: Array, wanted: Array, weights: Array) -> Array:
    """Return the coefficients by weighted least squares with a penalty, given the features of each case in a row."""
    shares = weights / weights.mean()
    weighted = matrix * shares[:, None]
    penalty = RIDGE * len(matrix) * np.diag(np.mean(matrix * weighted, axis=0) + SMALLEST_SQUARE)
    solved: Array = np.linalg.solve(matrix.T @ weighted + penalty, weighted.T @ wanted)
    return solved
