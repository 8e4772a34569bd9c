"""Test the bands: forecast each run by what the others teach, and count the outcomes inside."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt.features.forecast.bleu import LEAST_BLEU, learn_bleu, reached_by
from nmt.features.forecast.curve import Array
from nmt.features.forecast.earlier_runs import INTERVALS, SHARES, EarlierRun
from nmt.features.forecast.extrapolate import FEATURES
from nmt.features.forecast.learn import Band, Case, cases_of, learn


class Forecast(NamedTuple):
    """A forecast of a run that its teachers leave out."""

    case: Case
    loss: Band
    bleu: Band
    bleu_outcome: float
    """NaN if it is too low to count, or was not forecast."""


def left_out(runs: Sequence[EarlierRun], without: str = "") -> Iterator[Forecast]:
    """Yield the forecasts of each run by the others, which also give the width of the band.

    A feature may be left out, to show what it is worth.
    """
    used = np.array([float(each != without) for each in FEATURES])
    cases = {run.name: [_masked(case, used) for case in cases_of(run)] for run in runs}
    for run in runs:
        others = [each for each in runs if each is not run]
        coefficients = learn([case for each in others for case in cases[each.name]])
        scores, final = learn_bleu(others), run.bleu[-1][1]
        for case in cases[run.name]:
            loss = coefficients.band(case.situation)
            reached = reached_by(run, case)
            counts = final >= LEAST_BLEU and reached.tells
            yield Forecast(case, loss, scores.band(reached, loss), final if counts else math.nan)


def print_coverage(forecasts: Sequence[Forecast]) -> None:
    """Print a table of the forecasts, and those that missed."""
    runs = len({each.case.run for each in forecasts})
    print(f"{runs} runs, each forecast by the {runs - 1} others\n")
    columns = [
        f"{name} {each}"
        for name, unit in (("loss", "nats"), ("BLEU", "BLEU"))
        for each in ("inside", f"band, ± {unit}", f"error, {unit}", f"bias, {unit}")
    ]
    print(f"| share of the run | validations until then | {' | '.join(columns)} |")
    print("|---" * (2 + len(columns)) + "|")
    for share in SHARES:
        for validations in INTERVALS:
            found = [each for each in forecasts if (each.case.share, each.case.validations) == (share, validations)]
            print(_row(f"{round(share * 6)}/6", round(share * validations), found))
    print(_row("all", "", forecasts))
    print("\nOutside:")
    for each in forecasts:
        if not each.loss.holds(each.case.outcome):
            print(f"  {_words(each.case)}: loss {each.case.outcome:.3f}, forecast {_range(each.loss, 3)}")
        if not math.isnan(each.bleu_outcome) and not each.bleu.holds(each.bleu_outcome):
            print(f"  {_words(each.case)}: BLEU {each.bleu_outcome:.1f}, forecast {_range(each.bleu, 1)}")


def _masked(case: Case, used: Array) -> Case:
    """Return a case whose unused features are 0."""
    return case._replace(situation=case.situation._replace(features=case.situation.features * used))


def _row(share: str, validations: object, forecasts: Sequence[Forecast]) -> str:
    """Return a row of the table."""
    losses = [(each.loss, each.case.outcome) for each in forecasts]
    scores = [(each.bleu, each.bleu_outcome) for each in forecasts if not math.isnan(each.bleu_outcome)]
    return f"| {share} | {validations} | {_figures(losses, 3)} | {_figures(scores, 1)} |"


def _figures(forecasts: Sequence[tuple[Band, float]], digits: int) -> str:
    """Return the number of outcomes inside, half of the band, the size of the error and the error, on average."""
    if not forecasts:
        return " | | | "
    inside = sum(band.holds(outcome) for band, outcome in forecasts)
    half = np.mean([(band.high - band.low) / 2 for band, _ in forecasts])
    errors = np.array([band.expected - outcome for band, outcome in forecasts])
    error, bias = np.abs(errors).mean(), errors.mean()
    return f"{inside} of {len(forecasts)} | {half:.{digits}f} | {error:.{digits}f} | {bias:+.{digits}f}"


def _words(case: Case) -> str:
    return f"{case.run} at {round(case.share * 6)}/6 after {round(case.share * case.validations)} validations"


def _range(band: Band, digits: int) -> str:
    return f"{band.expected:.{digits}f} ({band.low:.{digits}f} to {band.high:.{digits}f})"
