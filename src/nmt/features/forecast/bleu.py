"""The BLEU that goes with a development loss.

The loss per word piece depends on the vocabulary, so the map is from nats per character of the reference. The square
root of BLEU falls linearly with them on the texts of the earlier runs. Texts differ, so the BLEU that a run has already
reached moves its line: the more, the more of the run is done.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nmt.features.forecast.earlier_runs import EarlierRun, earlier_runs
from nmt.features.forecast.learn import Band, Case, Coefficients, cases_of, learn, spread_of

LEAST_BLEU = 2.0
"""Below this, BLEU says nothing about the loss."""
MAP_ERROR = 0.2
"""The part of the error of the root of BLEU that does not depend on the loss, before it is scaled."""


class Reached(NamedTuple):
    """What a run has reached at a validation."""

    loss: float
    """Smoothed, per word piece."""
    nll: float
    """Negative log-likelihood per word piece."""
    pieces_per_character: float
    """Word pieces per character of the reference."""
    bleu: float | None
    """None if the development set was not decoded."""
    done: float
    """The share of its steps that the run has made."""

    @property
    def tells(self) -> bool:
        """Whether the BLEU at the end can be forecast: a model that does not translate yet may never do so."""
        return self.bleu is None or self.bleu >= LEAST_BLEU


class Line(NamedTuple):
    """The root of the BLEU at the end of a run as a function of nats per character."""

    intercept: float
    slope: float
    nll_per_loss: float
    """The change of the negative log-likelihood per change of the smoothed loss."""

    def root(self, reached: Reached, loss: float) -> float:
        """Return the root of BLEU to expect with another loss."""
        now, then = (self._nats(reached, each) for each in (reached.loss, loss))
        root = self.intercept - self.slope * then
        if reached.bleu is not None:
            usual = self.intercept - self.slope * now
            root += math.sqrt(reached.done) * (math.sqrt(reached.bleu) - usual)
        return max(0.0, root)

    def _nats(self, reached: Reached, loss: float) -> float:
        return (reached.nll + self.nll_per_loss * (loss - reached.loss)) * reached.pieces_per_character


class BleuMap(NamedTuple):
    """The line, and the spread of the runs around it."""

    line: Line
    spread: float
    """Half the width of the band of the root, divided by `_width`."""

    def band(self, reached: Reached, loss: Band) -> Band:
        """Return the BLEU to expect at the end, given the loss."""
        root, half = self.line.root(reached, loss.expected), self.spread * _width(self.line, reached, loss)
        low, high = max(0.0, root - half), min(10.0, root + half)
        return Band(min(10.0, root) ** 2, low**2, high**2)


def learn_bleu(runs: Sequence[EarlierRun]) -> BleuMap:
    """Return the map that fits runs, with a spread from forecasts of each run by the others."""
    cases = {run.name: cases_of(run) for run in runs}
    errors: list[float] = []
    weights: list[float] = []
    for run in runs:
        others = [each for each in runs if each is not run]
        line = _fit(others)
        coefficients = learn([case for each in others for case in cases[each.name]])
        found = [error for case in cases[run.name] if (error := _error(line, coefficients, run, case)) is not None]
        errors += found
        weights += [run.tokens] * len(found)
    return BleuMap(_fit(runs), spread_of(errors, weights, len(runs)))


def reached_by(run: EarlierRun, case: Case) -> Reached:
    """Return what an earlier run had reached at a case."""
    bleu = dict(run.bleu).get(case.step)
    return Reached(case.situation.loss, run.nll(case.step), run.pieces_per_character, bleu, case.share)


@cache
def learned_bleu() -> BleuMap:
    """Return what all earlier runs say."""
    return learn_bleu(earlier_runs())


def _error(line: Line, coefficients: Coefficients, run: EarlierRun, case: Case) -> float | None:
    """Return the error of a forecast of the last BLEU of a run; None if there is none, or that BLEU is too low."""
    reached, outcome = reached_by(run, case), run.bleu[-1][1]
    if outcome < LEAST_BLEU or not reached.tells:
        return None
    loss = coefficients.band(case.situation)
    return abs(math.sqrt(outcome) - line.root(reached, loss.expected)) / _width(line, reached, loss)


def _width(line: Line, reached: Reached, loss: Band) -> float:
    """Return what the error of the root of BLEU is proportional to."""
    return MAP_ERROR + (line.root(reached, loss.low) - line.root(reached, loss.high)) / 2


def _fit(runs: Sequence[EarlierRun]) -> Line:
    """Return the line that fits runs best."""
    points = [
        np.array([(run.nll(at) * run.pieces_per_character, math.sqrt(b)) for at, b in run.bleu if b >= LEAST_BLEU])
        for run in runs
        if run.bleu[-1][1] >= LEAST_BLEU
    ]
    nats, roots = np.concatenate(points).T
    slope, _ = np.polyfit(nats, roots, 1)
    intercept = float(np.mean([each[-1, 1] - slope * each[-1, 0] for each in points]))
    losses = [np.array([[loss, nll] for _, loss, nll in run.valid[len(run.valid) // 3 :]]) for run in runs]
    centred = np.concatenate([each - each.mean(axis=0) for each in losses])
    nll_per_loss = float(centred[:, 0] @ centred[:, 1] / (centred[:, 0] @ centred[:, 0]))
    return Line(intercept, float(-slope), nll_per_loss)
