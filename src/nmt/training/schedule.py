"""The learning rate of each step (section 5.3 of the paper), and the last step of a run that time ends."""

import math
from collections.abc import Callable
from dataclasses import replace

from nmt.config.registry import load
from nmt.config.training import SCHEDULES_WITHOUT_END, TrainingConfig

Schedule = Callable[[int, int, TrainingConfig], float]
"""Returns the learning rate of a step after the warmup, as a fraction of the peak, given the last step of the run."""

WARMUP_SHARE = 0.12
"""The share of its steps that the warmup may take of a run that time ends early."""
LEAST_WARMUP = 1 / 6
"""The share of the planned warmup that remains however early time ends a run: the first steps are slow, so after them
a run seems to have few."""


def learning_rate(step: int, config: TrainingConfig, d_model: int, last_step: int = 0) -> float:
    """Return the rate of a step, counted from 1: a linear warmup to the peak, then what the schedule returns.

    With `inverse_sqrt` and the default peak this is the paper's
    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).
    `last_step` is the one at which the run ends, if it is not `training.steps`.
    """
    peak = config.learning_rate or (d_model * config.warmup_steps) ** -0.5
    config = until(last_step, config)
    if step < config.warmup_steps:
        return peak * step / config.warmup_steps
    schedule: Schedule = load("training.schedule", config.schedule)
    return peak * schedule(step, last_step or config.steps, config)


def until(last_step: int, config: TrainingConfig) -> TrainingConfig:
    """Return the settings with the warmup of a run that ends at a step; 0 for `training.steps`."""
    if not 0 < last_step < config.steps or config.schedule in SCHEDULES_WITHOUT_END:
        return config
    steps = math.ceil(max(WARMUP_SHARE * last_step, LEAST_WARMUP * config.warmup_steps))
    return replace(config, warmup_steps=min(config.warmup_steps, steps))


def reachable_step(step: int, seconds: float, config: TrainingConfig) -> int:
    """Return the last step of a run: that of `training.steps`, or an earlier one at which its minutes end.

    If the run goes on, it makes at least one more step.

    Args:
        step: The steps so far.
        seconds: The training time so far, from which the speed follows.
        config: The steps, and the limit `training.max_training_minutes`.
    """
    limit = 60 * config.max_training_minutes
    if not (limit and step and seconds > 0):
        return config.steps
    return min(config.steps, max(step + 1, int(step * limit / seconds)))


def inverse_sqrt(step: int, _last_step: int, config: TrainingConfig) -> float:
    """Return the paper's decay, with the inverse square root of the step."""
    return math.sqrt(config.warmup_steps / step)


def cosine(step: int, last_step: int, config: TrainingConfig) -> float:
    """Return half a cosine wave, which reaches zero at the last step."""
    return (1 - math.cos(math.pi * linear(step, last_step, config))) / 2


def linear(step: int, last_step: int, config: TrainingConfig) -> float:
    """Return a straight line, which reaches zero at the last step."""
    return 1 - min(1.0, (step - config.warmup_steps) / max(1, last_step - config.warmup_steps))


def constant(_step: int, _last_step: int, _config: TrainingConfig) -> float:
    """Return 1: the rate stays at the peak."""
    return 1.0
