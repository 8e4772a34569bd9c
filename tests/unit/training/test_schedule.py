"""The learning rate against the paper's formula and against hand-computed values."""

from dataclasses import replace

import pytest

from nmt.config.training import TrainingConfig
from nmt.training.schedule import learning_rate

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
