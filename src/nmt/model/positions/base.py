"""What a position encoding can do. Each encoding has a file beside this one and is chosen by `model.positions`."""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.choices import find
from nmt.config.schema import ModelConfig

Transform = Callable[[Tensor], Tensor]
"""Changes queries or keys (T, h, d_k) according to their positions."""

ScoreBias = nn.Module
"""Called with queries (..., h, Lq, d_k) and the distances (..., Lq, Lk) from each query to each key, positive to keys
that come later; returns what is added to the scores: (..., h, Lq, Lk)."""


class Places(NamedTuple):
    """Where the tokens of a stream stand in their sentences."""

    positions: Tensor
    """(T,) counted from 0."""
    longest: int
    """All positions are below this."""


class Positions:
    """A position encoding. Subclasses override the hooks they need; the defaults change nothing."""

    biases_scores: ClassVar[bool] = False
    """Whether `score_bias` returns a module. Flash attention cannot add a bias, so padded blocks replace it."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def table_sizes(self) -> Mapping[str, int]:
        """Return the number of learned vectors per side (source, target) that have some."""
        return {}

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """Add positions to the scaled word vectors (T, d_model), given the side's learned vectors if it has some."""
        return stream

    def transform(self, places: Places, dtype: torch.dtype) -> Transform | None:
        """Return what self-attention applies to its queries and keys."""
        return None

    def score_bias(self) -> ScoreBias | None:
        """Return a module for one self-attention layer that computes what is added to its scores."""
        return None

    def bias_parameters(self) -> int:
        """Return the number of parameters of `score_bias`."""
        return 0

    def bias_saved_numbers(self) -> int:
        """Return how many numbers per query token `score_bias` saves for backward."""
        return 0


def positions_of(config: ModelConfig) -> Positions:
    """Return the position encoding that the settings choose."""
    positions: Positions = find("model.positions", config.positions)(config)
    return positions
