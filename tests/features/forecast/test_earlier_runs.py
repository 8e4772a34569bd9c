"""The runs in the package, the bands that they give, and the BLEU that goes with a loss."""

import math
from functools import cache

import pytest

from learning_curves.coverage import Forecast, left_out, print_coverage
from learning_curves.runs import RUNS
from nmt.features.forecast.bleu import LEAST_BLEU, Reached, learned_bleu
from nmt.features.forecast.earlier_runs import EarlierRun, earlier_runs
from nmt.features.forecast.extrapolate import FEATURES
from nmt.features.forecast.learn import Band, learned


@cache
def forecasts() -> list[Forecast]:
    """Return the forecast of each run by the others."""
    return list(left_out(earlier_runs()))


@pytest.mark.parametrize("run", earlier_runs(), ids=lambda run: run.name)
def test_a_run_of_the_package_is_complete(run: EarlierRun) -> None:
    steps = [step for step, *_ in run.valid]
    assert steps == [run.steps * number // 24 for number in range(1, 25)]
    assert all(math.isfinite(loss) and math.isfinite(nll) for _, loss, nll in run.valid)
    assert [step for step, *_ in run.train] == list(range(10, run.steps + 1, 10))
    assert {step for step, _ in run.bleu} <= set(steps)
    assert run.bleu[-1][0] == run.steps
    planned = RUNS[run.name]
    assert (run.steps, run.about["words"], run.about["text"]) == (planned.steps, planned.words, planned.text)
    assert run.about["pairs"] <= planned.pairs


def test_there_are_many_kinds_of_runs() -> None:
    runs = earlier_runs()
    assert len(runs) >= 15
    assert {run.about["text"] for run in runs} == {"multi30k", "tatoeba"}
    assert {run.about["schedule"] for run in runs} == {"cosine", "inverse_sqrt", "constant", "wsd", "linear"}
    assert {run.about["optimizer"] for run in runs} == {"adam", "muon"}


def share_inside(pairs: list[tuple[Band, float]]) -> float:
    return sum(band.holds(outcome) for band, outcome in pairs) / len(pairs)


def losses(forecasts: list[Forecast]) -> list[tuple[Band, float]]:
    return [(each.loss, each.case.outcome) for each in forecasts]


def scores(forecasts: list[Forecast]) -> list[tuple[Band, float]]:
    return [(each.bleu, each.bleu_outcome) for each in forecasts if each.bleu_outcome >= LEAST_BLEU]


def test_bands_hold_four_fifths_of_the_outcomes_of_runs_that_are_left_out() -> None:
    assert 0.72 <= share_inside(losses(forecasts())) <= 0.92
    assert 0.72 <= share_inside(scores(forecasts())) <= 0.92


@pytest.mark.parametrize("share", [1 / 6, 1 / 3, 1 / 2])
def test_early_bands_hold_most_outcomes(share: float) -> None:
    early = [each for each in forecasts() if each.case.share == share]
    assert share_inside(losses(early)) >= 0.6
    assert share_inside(scores(early)) >= 0.6


def test_bands_are_wider_early() -> None:
    def width(share: float) -> float:
        found = [band.high - band.low for band, _ in losses([x for x in forecasts() if x.case.share == share])]
        return sum(found) / len(found)

    assert width(1 / 6) > width(1 / 3) > width(1 / 2) > width(5 / 6)


def test_the_decay_of_the_rate_lowers_the_loss() -> None:
    assert learned().values[FEATURES.index("decay")] < 0


def test_the_distance_from_the_floor_is_missed_if_it_is_left_out() -> None:
    def error(forecasts: list[Forecast]) -> float:
        return sum(abs(each.loss.expected - each.case.outcome) for each in forecasts)

    assert error(forecasts()) < error(list(left_out(earlier_runs(), "level")))


def test_forecasts_are_better_than_the_loss_of_now() -> None:
    forecast = [abs(band.expected - outcome) for band, outcome in losses(forecasts())]
    now = [abs(each.case.situation.loss - each.case.outcome) for each in forecasts()]
    assert sum(forecast) < 0.4 * sum(now)


def test_bleu_rises_as_the_loss_falls() -> None:
    reached = Reached(loss=4.0, nll=3.3, pieces_per_character=0.25, bleu=12.0, done=0.5)
    expected = [learned_bleu().line.root(reached, loss) for loss in (4.0, 3.5, 3.0)]
    assert expected == sorted(expected)
    assert expected[0] < expected[-1]


def test_bleu_reached_so_far_moves_the_forecast() -> None:
    low, high = (Reached(4.0, 3.3, 0.25, bleu, 0.5) for bleu in (5.0, 20.0))
    loss = Band(3.8, 3.7, 3.9)
    assert learned_bleu().band(low, loss).expected < learned_bleu().band(high, loss).expected
    assert [Reached(4.0, 3.3, 0.25, bleu, 0.5).tells for bleu in (None, 0.2, 2.0)] == [True, False, True]


def test_bleu_reached_so_far_moves_the_forecast_more_if_more_is_done() -> None:
    """A run at its end keeps its BLEU at the same loss; one at its beginning has what is usual."""
    line = learned_bleu().line
    unknown = line.root(Reached(4.0, 3.3, 0.25, None, 0.5), 4.0)
    beginning, middle, end = (line.root(Reached(4.0, 3.3, 0.25, 20.0, done), 4.0) for done in (0.0, 0.5, 1.0))
    assert beginning == unknown < middle < end == pytest.approx(20**0.5)


def test_bleu_stays_between_0_and_100() -> None:
    hopeless = learned_bleu().band(Reached(9.0, 9.0, 0.5, 0.0, 0.5), Band(9.0, 8.0, 10.0))
    assert hopeless.expected == hopeless.low == 0
    perfect = learned_bleu().band(Reached(1.5, 0.3, 0.2, 95.0, 0.5), Band(1.2, 1.1, 1.3))
    assert 0 <= perfect.low <= perfect.expected <= perfect.high <= 100


def test_the_table_names_every_miss(capsys: pytest.CaptureFixture[str]) -> None:
    print_coverage(forecasts())
    table, _, misses = capsys.readouterr().out.partition("Outside:")
    outside = sum(not band.holds(outcome) for band, outcome in [*losses(forecasts()), *scores(forecasts())])
    assert misses.strip().count("\n") + 1 == outside
    assert f"| all |  | {sum(band.holds(x) for band, x in losses(forecasts()))} of {len(forecasts())} |" in table
