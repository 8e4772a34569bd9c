"""Fits and slopes against laws that are known, and progress against plain loops."""

import math

import numpy as np
import pytest

from nmt.config.schema import TrainingConfig
from nmt.features.forecast.curve import Curve, Point, Rates, curve_of, smoothing_floor
from nmt.features.forecast.earlier_runs import EarlierRun, rates
from nmt.features.forecast.extrapolate import FLOOR_NATS, fit, situation
from nmt.features.forecast.learn import LARGER_RUNS, cases_of, learn, spread_of
from nmt.runs.metrics import event_of
from nmt.training.schedule import learning_rate, peak_rate

SCHEDULES = ("cosine", "inverse_sqrt", "constant", "wsd")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_progress_is_that_of_a_loop(schedule: str) -> None:
    training = TrainingConfig(steps=900, schedule=schedule, warmup_steps=70)
    found, total = rates(training), 0.0
    for step in range(1, 901):
        fraction = learning_rate(step, training, 64) / peak_rate(training, 64)
        total += math.sqrt(fraction)
        assert found.fraction(step) == pytest.approx(fraction, abs=0.02)
        assert found.progress(step) == pytest.approx(total, rel=0.01, abs=1)
    assert found.peak_step == 70


def test_rates_of_a_single_step_are_known() -> None:
    assert Rates(1, 4000, lambda _: 1.0).progress(1) == 1


@pytest.mark.parametrize("slope", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("validations", [1, 4])
def test_slope_of_a_power_law_is_its_exponent(slope: float, validations: int) -> None:
    constant = Rates(400, 1, lambda _: 1.0)
    floor = 0.7 + FLOOR_NATS
    steps = [200 * number // validations for number in range(1, validations + 1)]

    def law(step: int) -> float:
        return float(floor + 9 * step**-slope)

    # a log line is the mean of ten steps, which the law has near their middle
    lines = [Point(step, law(step - 5)) for step in range(10, 201, 10)]
    now = situation(Curve([Point(step, law(step)) for step in steps], lines), constant, 400, 0.7)
    horizon, decay, own, repeats, _, restlessness = now.features
    assert horizon == pytest.approx(math.log(2))
    assert (decay, repeats, restlessness) == (0, 0, 0)
    assert own / horizon + 0.25 == pytest.approx(slope, abs=0.01)


def test_a_run_without_log_lines_has_the_usual_slope() -> None:
    now = situation(Curve([Point(100, 4.0)], []), Rates(400, 1, lambda _: 1.0), 400, 1.0)
    assert now.features[2] == 0


def test_a_run_that_repeats_its_text_is_told_apart() -> None:
    constant = Rates(400, 1, lambda _: 1.0)
    once, often = (situation(Curve([Point(100, 4.0)], [], passes), constant, 400, 1.0) for passes in (0, 5))
    assert once.features[3] == 0
    assert often.features[3] == pytest.approx(math.log(21) * math.log(4))


@pytest.mark.parametrize(("above", "level"), [(0.001, 0.0), (2.0, math.log(2)), (50.0, 1.5)])
def test_level_is_limited_to_what_the_earlier_runs_had(above: float, level: float) -> None:
    now = situation(Curve([Point(100, 1.0 + FLOOR_NATS + above)], []), Rates(400, 1, lambda _: 1.0), 400, 1.0)
    assert now.features[4] == pytest.approx((level - 1) * math.log(4))


def test_weight_decay_makes_a_run_restless_until_its_rate_ends() -> None:
    """Weights of size w that get random steps of size s and lose a share d settle at s / w = sqrt(2 d)."""
    random = np.random.default_rng(1)
    relative = []
    for shrinking in (0.01, 0.04):
        weights = random.normal(size=5000)
        for _ in range(600):
            weights = (1 - shrinking) * weights + random.normal(size=5000)
        relative.append(math.sqrt(5000) / np.linalg.norm(weights))
        falling = Rates(400, 1, lambda step: 1 - step / 400, shrinking)
        now = situation(Curve([Point(200, 2.0 + FLOOR_NATS)], []), falling, 400, 1.0)
        assert math.sqrt(2) * now.features[5] == pytest.approx(relative[-1] * math.sqrt(0.5), rel=0.03)
    assert relative[1] / relative[0] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(("above", "distance"), [(4.0, 4.0), (0.5, 0.5), (0.001, 0.2), (-1.0, 0.2)])
def test_a_falling_rate_counts_in_nats_not_in_shares_of_the_distance(above: float, distance: float) -> None:
    falling = Rates(400, 1, lambda step: 1 - step / 400, 0.04)
    now = situation(Curve([Point(300, 1.0 + FLOOR_NATS + above)], []), falling, 400, 1.0)
    assert now.features[1] * distance == pytest.approx(0.25, abs=0.01)
    assert now.features[5] * distance == pytest.approx(math.sqrt(0.25 * 0.04), rel=0.02)


def test_fit_recovers_the_coefficients_of_a_law() -> None:
    random, wanted = np.random.default_rng(1), np.array([-0.3, -0.15, -0.2, 0.05, 0.3])
    features = random.normal(size=(300, 5))
    changes = features @ wanted + 0.01 * random.normal(size=300)
    assert fit(features, changes, np.ones(300)) == pytest.approx(wanted, abs=0.02)
    # what has no weight teaches nothing
    wrong = np.concatenate([changes[:200], np.full(100, 9.0)])
    assert fit(features, wrong, np.repeat([1.0, 0.0], [200, 100])) == pytest.approx(wanted, abs=0.02)


def test_spread_is_the_quantile_of_the_errors() -> None:
    errors = [0.5, 0.1, 0.3, 0.2, 0.4]
    assert spread_of(errors, [1.0] * 5, runs=1000) == 0.5  # a little more than four fifths
    assert spread_of(errors, [1.0, 7.0, 1.0, 1.0, 1.0], runs=1000) == 0.3
    assert spread_of(errors, [1.0] * 5, runs=1) == 0.5


def synthetic_run(name: str, schedule: str, steps: int, exponent: float, gain: float, floor: float) -> EarlierRun:
    """Return a run that follows the law, with a floor of its own."""
    about = {"steps": steps, "schedule": schedule, "warmup_steps": steps // 8, "words": 4000, "batch_tokens": 512}
    about |= {"learning_rate": 4e-3, "weight_decay": 0.0}
    of_run = rates(TrainingConfig(steps=steps, schedule=schedule, warmup_steps=steps // 8))

    def loss(step: int) -> float:
        return float(floor + 20 * of_run.progress(step) ** -exponent * math.exp(gain * of_run.fraction(step)))

    validations = [(step, loss(step), 0.9 * loss(step)) for step in range(steps // 24, steps + 1, steps // 24)]
    lines = [(step, loss(step - 5), 0.0, 0) for step in range(10, steps + 1, 10)]
    return EarlierRun(name, about, validations, lines, [])


def test_forecasts_of_runs_that_follow_the_law_are_right() -> None:
    floor = smoothing_floor(4000, 0.1) + FLOOR_NATS
    teachers = [
        synthetic_run(f"{schedule}-{exponent}", schedule, steps, exponent, 0.15, floor)
        for schedule, steps in zip(SCHEDULES, (480, 720, 960, 1200), strict=True)
        for exponent in (0.25, 0.35)
    ]
    learned = learn([case for run in teachers for case in cases_of(run)])
    for case in cases_of(synthetic_run("new", "cosine", 600, 0.3, 0.15, floor)):
        band = learned.band(case.situation, case.weight)
        assert band.expected == pytest.approx(case.outcome, rel=0.04)
        assert band.holds(case.outcome)


def test_the_band_is_wider_the_more_of_the_run_is_ahead() -> None:
    floor = smoothing_floor(4000, 0.1) + 0.5  # another floor than the one assumed, so that there are errors
    runs = [synthetic_run(each, each, 480, 0.2 + 0.1 * number, 0.1, floor) for number, each in enumerate(SCHEDULES)]
    learned = learn([case for run in runs for case in cases_of(run)])
    for run in runs:
        bands = [learned.band(case.situation, case.weight) for case in cases_of(run) if case.validations == 6]
        widths = [band.high - band.low for band in bands]
        assert len(widths) == 5
        assert widths == sorted(widths, reverse=True)


def test_the_band_is_wider_for_a_run_that_is_larger_than_all_earlier_ones() -> None:
    floor = smoothing_floor(4000, 0.1) + 0.5
    runs = [synthetic_run(each, each, 480, 0.2 + 0.1 * number, 0.1, floor) for number, each in enumerate(SCHEDULES)]
    cases = [case for run in runs for case in cases_of(run)]
    learned, now = learn(cases), cases[0].situation
    usual, larger = (learned.band(now, tokens) for tokens in (cases[0].weight, cases[0].weight + 1))
    assert larger.expected == usual.expected
    assert larger.low < usual.low
    assert now.change_to(larger.high) - now.change_to(larger.expected) == pytest.approx(
        LARGER_RUNS * (now.change_to(usual.high) - now.change_to(usual.expected))
    )


def test_losses_that_are_not_finite_are_no_points() -> None:
    lines = [
        {"event": "start", "step": 0, "time": 0.0},
        {"event": "train", "step": 10, "time": 1.0, "loss": 5.0, "epoch": 2},
        {"event": "train", "step": 20, "time": 2.0, "loss": None, "epoch": 3},
        {"event": "valid", "step": 20, "time": 3.0, "loss": 4.0},
        {"event": "valid", "step": 30, "time": 4.0, "loss": None},
    ]
    curve = curve_of([event_of(line) for line in lines], "loss")
    assert (curve.valid, curve.train, curve.passes) == ([Point(20, 4.0)], [Point(10, 5.0)], 3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_floor_of_smoothed_labels_is_their_entropy(smoothing: float) -> None:
    words = 50
    label = np.full(words, smoothing / words)
    label[0] += 1 - smoothing
    entropy = -float((label[label > 0] * np.log(label[label > 0])).sum())
    assert smoothing_floor(words, smoothing) == pytest.approx(entropy, abs=0.02)
