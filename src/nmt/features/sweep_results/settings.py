"""The setting of the results of sweeps."""

import re
from dataclasses import dataclass

from nmt.errors import ConfigError

FIGURES = ("loss", "perplexity", "bleu")
"""Figures of a validation that a search can take."""
_SCORE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_]+")


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """What a sweep compares its runs by."""

    metric: str = "loss"
    """What a run returns to a search: loss, perplexity or bleu of the best validation, or a score of `eval`, such as
    test.bleu, which only `nmt all` computes in time."""

    def __post_init__(self) -> None:
        """Check the value."""
        if self.metric not in FIGURES and not _SCORE.fullmatch(self.metric):
            raise ConfigError(
                f"sweep.metric={self.metric} is not one of {', '.join(FIGURES)}, nor a split and a score: test.bleu"
            )
