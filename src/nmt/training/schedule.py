"""The learning rate (section 5.3 of the paper)."""

import math

from nmt.config.schema import TrainingConfig


def peak_rate(config: TrainingConfig, d_model: int) -> float:
    """The highest rate: the one set, or the paper's (d_model * warmup_steps)^-0.5."""
    return config.learning_rate or (d_model * config.warmup_steps) ** -0.5


def learning_rate(step: int, config: TrainingConfig, d_model: int) -> float:
    """The rate of a step, counted from 1: a linear rise to the peak, then the fall that the schedule names.

    With `inverse_sqrt` and no rate of one's own this is the paper's
    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).
    """
    peak, warmup = peak_rate(config, d_model), config.warmup_steps
    if step < warmup:
        return peak * step / warmup
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt(warmup / step)
    if config.schedule == "cosine":
        progress = min(1.0, (step - warmup) / max(1, config.steps - warmup))
        return peak * (1 + math.cos(math.pi * progress)) / 2
    return peak


def warmup_warning(config: TrainingConfig) -> str:
    """Return what to say if training ends before the rate has risen to its peak; nothing if it does not."""
    if config.warmup_steps <= config.steps:
        return ""
    return (
        f"training.warmup_steps={config.warmup_steps} is above training.steps={config.steps}: the learning rate only "
        f"rises, to {config.steps / config.warmup_steps:.0%} of its peak; lower training.warmup_steps"
    )
