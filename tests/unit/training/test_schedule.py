"""The learning rate against the paper's formula and against hand-computed values."""

from dataclasses import replace

import pytest

from nmt.config.training import TrainingConfig
from nmt.training.schedule import learning_rate, reachable_step, until

PAPER = TrainingConfig()
SHORT = replace(PAPER, learning_rate=1.0, warmup_steps=10, steps=110)


@pytest.mark.parametrize("d_model", [512, 1024])
@pytest.mark.parametrize("step", [1, 2, 100, 3999, 4000, 4001, 20_000, 100_000])
def test_default_rate_follows_the_papers_formula(step: int, d_model: int) -> None:
    expected = d_model**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, PAPER, d_model) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("inverse_sqrt", {5: 0.5, 10: 1.0, 40: 0.5}),
        ("cosine", {5: 0.5, 10: 1.0, 60: 0.5, 110: 0.0, 200: 0.0}),
        ("linear", {5: 0.5, 10: 1.0, 35: 0.75, 60: 0.5, 110: 0.0, 200: 0.0}),
        ("constant", {1: 0.1, 10: 1.0, 9999: 1.0}),
    ],
)
def test_rates_after_the_warmup(schedule: str, rates: dict[int, float]) -> None:
    config = replace(SHORT, schedule=schedule)
    assert [learning_rate(step, config, 512) for step in rates] == pytest.approx([*rates.values()], abs=1e-12)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_run_that_ends_early_has_the_rates_of_a_run_of_as_many_steps(schedule: str) -> None:
    planned = replace(SHORT, schedule=schedule, steps=400)
    for step in range(1, 101):
        assert learning_rate(step, planned, 512, 100) == learning_rate(step, replace(planned, steps=100), 512)


@pytest.mark.parametrize(
    ("last_step", "warmup_steps"),
    [(0, 300), (2500, 300), (2499, 300), (838, 101), (416, 50), (2, 50), (9000, 300)],
)
def test_a_run_that_time_ends_early_has_a_shorter_warmup(last_step: int, warmup_steps: int) -> None:
    """12% of the steps, or a sixth of the plan if that is more; 0 if nothing is known yet."""
    config = replace(SHORT, schedule="linear", warmup_steps=300, steps=2500)
    assert until(last_step, config).warmup_steps == warmup_steps
    assert learning_rate(warmup_steps, config, 512, last_step) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("minutes", "step", "seconds", "expected"),
    [
        (0, 50, 100.0, 1000),  # no limit
        (10, 0, 0.0, 1000),  # nothing is known yet
        (10, 50, 100.0, 300),
        (10, 50, 10.0, 1000),  # the steps end first
        (10, 300, 600.0, 301),  # the next step is the last one
    ],
)
def test_a_run_ends_where_its_minutes_end(minutes: float, step: int, seconds: float, expected: int) -> None:
    assert reachable_step(step, seconds, replace(PAPER, steps=1000, max_training_minutes=minutes)) == expected
