from dataclasses import replace

import pytest

from nmt.config.schema import TrainingConfig
from nmt.training.schedule import learning_rate, peak_rate, warmup_warning

PAPER = TrainingConfig()


@pytest.mark.parametrize("d_model", [512, 1024])
@pytest.mark.parametrize("step", [1, 2, 100, 3999, 4000, 4001, 20_000, 100_000])
def test_the_papers_formula(step: int, d_model: int) -> None:
    expected = d_model**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, PAPER, d_model) == pytest.approx(expected, rel=1e-12)


def test_figures_of_base() -> None:
    assert peak_rate(PAPER, 512) == pytest.approx(6.98771e-4, rel=1e-5)
    assert learning_rate(16_000, PAPER, 512) == pytest.approx(6.98771e-4 / 2, rel=1e-5)


def test_a_rate_of_ones_own() -> None:
    config = replace(PAPER, learning_rate=2e-3, warmup_steps=10)
    assert [learning_rate(step, config, 512) for step in (5, 10, 40)] == pytest.approx([1e-3, 2e-3, 1e-3])


def test_cosine_falls_to_zero_and_stays() -> None:
    config = replace(PAPER, schedule="cosine", learning_rate=1.0, warmup_steps=10, steps=110)
    rates = [learning_rate(step, config, 512) for step in (10, 60, 110, 200)]
    assert rates == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-12)


def test_constant() -> None:
    config = replace(PAPER, schedule="constant", learning_rate=1.0, warmup_steps=10)
    assert [learning_rate(step, config, 512) for step in (1, 10, 9999)] == pytest.approx([0.1, 1.0, 1.0])


@pytest.mark.parametrize("steps", [4000, 100_000])
def test_a_warmup_that_ends_is_no_cause_for_a_warning(steps: int) -> None:
    assert not warmup_warning(replace(PAPER, steps=steps))


def test_a_warmup_longer_than_training_is_told() -> None:
    warning = warmup_warning(replace(PAPER, steps=1000))
    assert "training.warmup_steps=4000 is above training.steps=1000" in warning
    assert "25% of its peak" in warning
