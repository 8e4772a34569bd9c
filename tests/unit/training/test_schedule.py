"""The learning rate against the paper's formula and against hand-computed values."""

from dataclasses import replace

import pytest

from nmt.config.training import TrainingConfig
from nmt.training.schedule import learning_rate, until
from nmt.training.stopping import reachable_step

PAPER = TrainingConfig()


@pytest.mark.parametrize("d_model", [512, 1024])
@pytest.mark.parametrize("step", [1, 2, 100, 3999, 4000, 4001, 20_000, 100_000])
def test_default_rate_follows_the_papers_formula(step: int, d_model: int) -> None:
    expected = d_model**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, PAPER, d_model) == pytest.approx(expected, rel=1e-12)


def test_learning_rate_sets_the_peak() -> None:
    config = replace(PAPER, learning_rate=2e-3, warmup_steps=10)
    assert [learning_rate(step, config, 512) for step in (5, 10, 40)] == pytest.approx([1e-3, 2e-3, 1e-3])


def test_cosine_reaches_zero_at_the_last_step() -> None:
    config = replace(PAPER, schedule="cosine", learning_rate=1.0, warmup_steps=10, steps=110)
    rates = [learning_rate(step, config, 512) for step in (10, 60, 110, 200)]
    assert rates == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-12)


def test_linear_falls_evenly_to_zero_at_the_last_step() -> None:
    config = replace(PAPER, schedule="linear", learning_rate=1.0, warmup_steps=10, steps=110)
    rates = [learning_rate(step, config, 512) for step in (5, 10, 35, 60, 110, 200)]
    assert rates == pytest.approx([0.5, 1.0, 0.75, 0.5, 0.0, 0.0])


def test_constant_keeps_the_peak_after_the_warmup() -> None:
    config = replace(PAPER, schedule="constant", learning_rate=1.0, warmup_steps=10)
    assert [learning_rate(step, config, 512) for step in (1, 10, 9999)] == pytest.approx([0.1, 1.0, 1.0])


def test_warmup_longer_than_training_gives_a_warning() -> None:
    warning = replace(PAPER, steps=1000).warmup_warning
    assert "training.warmup_steps=4000 is above training.steps=1000" in warning
    assert "25% of its peak" in warning


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_run_that_ends_early_has_the_rates_of_a_run_of_as_many_steps(schedule: str) -> None:
    planned = replace(PAPER, schedule=schedule, learning_rate=1.0, warmup_steps=10, steps=400)
    shorter = replace(planned, steps=100)
    steps = range(1, 101)
    assert [learning_rate(step, planned, 512, 100) for step in steps] == [
        learning_rate(step, shorter, 512) for step in steps
    ]


@pytest.mark.parametrize(
    ("last_step", "warmup_steps"),
    [
        (0, 300),  # nothing is known yet
        (2500, 300),
        (2499, 300),  # 12% are 299.88
        (838, 101),
        (416, 50),  # a sixth of the plan, as 12% are 49.92
        (2, 50),  # the first steps are slow
        (9000, 300),
    ],
)
def test_a_run_that_time_ends_early_has_a_shorter_warmup(last_step: int, warmup_steps: int) -> None:
    config = replace(PAPER, schedule="linear", learning_rate=1.0, warmup_steps=300, steps=2500)
    assert until(last_step, config).warmup_steps == warmup_steps
    assert learning_rate(warmup_steps, config, 512, last_step) == pytest.approx(1.0)
    assert learning_rate(warmup_steps // 2, config, 512, last_step) == pytest.approx(warmup_steps // 2 / warmup_steps)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "constant"])
def test_rates_that_know_no_end_do_not_depend_on_it(schedule: str) -> None:
    config = replace(PAPER, schedule=schedule, warmup_steps=10, steps=400)
    assert [learning_rate(step, config, 512, 12) for step in (5, 90)] == [
        learning_rate(step, config, 512) for step in (5, 90)
    ]


@pytest.mark.parametrize(
    ("minutes", "step", "seconds", "expected"),
    [
        (0, 50, 100.0, 1000),  # no limit
        (10, 0, 0.0, 1000),  # nothing is known yet
        (10, 50, 100.0, 300),
        (10, 50, 10.0, 1000),  # the steps end first
        (10, 300, 600.0, 301),  # the next step is the last one
        (10, 1, 1000.0, 2),
    ],
)
def test_a_run_ends_where_its_minutes_end(minutes: float, step: int, seconds: float, expected: int) -> None:
    config = replace(PAPER, steps=1000, max_training_minutes=minutes)
    assert reachable_step(step, seconds, config) == expected
