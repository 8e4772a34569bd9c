"""Learn from earlier runs how losses continue, and how wide a band has to be."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nmt.features.forecast.curve import Array
from nmt.features.forecast.earlier_runs import INTERVALS, SHARES, EarlierRun, earlier_runs
from nmt.features.forecast.extrapolate import Situation, fit, situation

WIDTH_POWER = 0.75
"""How the error grows with the part of the run that is ahead: less than in proportion."""
SMALLEST_WIDTH = 0.02
"""The width for a run that is nearly done."""
LARGER_RUNS = 2.5
"""How many times as wide the band is for a run of more tokens than all earlier ones; docs/results.md says why."""
COVERAGE = 0.8
"""The share of outcomes that the band is to hold."""


class Band(NamedTuple):
    """What to expect, and the range that is to hold 80% of the outcomes."""

    expected: float
    low: float
    high: float

    def holds(self, outcome: float) -> bool:
        """Return whether an outcome is in the range."""
        return self.low <= outcome <= self.high


class Case(NamedTuple):
    """A validation of an earlier run, and how its loss went on."""

    run: str
    step: int
    share: float
    validations: int
    situation: Situation
    outcome: float
    """The lowest development loss of the rest of the run."""
    weight: float
    """The tokens of the run: those that people train are larger than these, so the largest count most."""

    @property
    def change(self) -> float:
        """The logarithm of the change that the coefficients are to give."""
        return self.situation.change_to(self.outcome)


class Coefficients(NamedTuple):
    """What earlier runs say about the change up to the end."""

    values: Array
    spread: float
    """Half the width of the band, divided by `width_of`."""
    most_tokens: float
    """Those of the largest earlier run."""

    def band(self, now: Situation, tokens: float = 0.0) -> Band:
        """Return the loss to expect at the end of a run, given its number of tokens (see `EarlierRun.tokens`)."""
        change, half = change_of(self.values, now), self.spread * width_of(now)
        if tokens > self.most_tokens:
            half *= LARGER_RUNS
        return Band(*(now.loss_after(each) for each in (change, change - half, change + half)))


@cache
def cases_of(run: EarlierRun) -> list[Case]:
    """Return the cases of a run; there are none before the rate has reached its peak."""
    found, rates = [], run.rates
    for share in SHARES:
        step = round(share * run.steps)
        if step < rates.peak_step:
            continue
        for validations in INTERVALS:
            now = situation(run.curve(step, validations), rates, run.steps, run.floor)
            found.append(Case(run.name, step, share, validations, now, run.best_loss(step), run.tokens))
    return found


def learn(cases: Sequence[Case]) -> Coefficients:
    """Return the coefficients, and the spread of the runs around those that the other runs give."""
    features, changes = np.array([case.situation.features for case in cases]), np.array([case.change for case in cases])
    runs, weights = np.array([case.run for case in cases]), np.array([case.weight for case in cases])
    errors = np.empty(len(cases))
    for run in {*runs}:
        left_out = runs == run
        values = fit(features[~left_out], changes[~left_out], weights[~left_out])
        expected = [change_of(values, case.situation) for case in cases if case.run == run]
        errors[left_out] = abs(changes[left_out] - expected)
    errors /= [width_of(case.situation) for case in cases]
    values = fit(features, changes, weights)
    return Coefficients(values, spread_of(errors, weights, len({*runs})), float(weights.max()))


def spread_of(errors: Array | Sequence[float], weights: Array | Sequence[float], runs: int) -> float:
    """Return what COVERAGE of the errors do not exceed, and a little more because a new run joins these runs."""
    order = np.argsort(errors)
    shares = np.cumsum(np.array(weights)[order]) / np.sum(weights)
    place = int(np.searchsorted(shares, COVERAGE * (1 + 1 / runs)))
    return float(errors[int(order[min(place, len(order) - 1)])])


def change_of(values: Array, now: Situation) -> float:
    """Return the expected change, which is never upwards, because the best checkpoint is kept."""
    return min(0.0, float(now.features @ values))


def width_of(now: Situation) -> float:
    """Return what the error of a forecast is proportional to: a power of how much of the run is still ahead."""
    horizon, decay = now.features[:2]
    return float(max(0.0, float(horizon) + 0.5 * float(decay)) ** WIDTH_POWER) + SMALLEST_WIDTH


@cache
def learned() -> Coefficients:
    """Return what all earlier runs say."""
    return learn([case for run in earlier_runs() for case in cases_of(run)])
