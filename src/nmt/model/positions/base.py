"""The interface of position encodings. Each encoding has its own file in this folder; `model.positions` selects it."""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.config.registry import load

Transform = Callable[[Tensor], Tensor]
"""Changes queries or keys (T, h, d_k) according to their positions."""

ScoreBias = nn.Module
"""Called with queries (..., h, Lq, d_k) and the distances (..., Lq, Lk) from each query to each key, positive for
later keys; returns the numbers to add to the scores: (..., h, Lq, Lk)."""


class Places(NamedTuple):
    """The positions of the tokens of a stream in their sentences."""

    positions: Tensor
    """(T,) counted from 0."""
    longest: int
    """All positions are below this."""


class Positions:
    """A position encoding. Subclasses override the hooks they need; the defaults change nothing."""

    biases_scores: ClassVar[bool] = False
    """Whether `score_bias` returns a module. Flash attention cannot add a bias, so padded blocks replace it."""

    rotates: ClassVar[bool] = False
    """Whether `transform` rotates pairs of coordinates by the angles of `rotation`, which is all that it does."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def table_sizes(self) -> Mapping[str, int]:
        """Return the number of learned position vectors for source and target; without any, an empty mapping."""
        return {}

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """Add positions to the scaled word vectors (T, d_model), given the learned position vectors, if any."""
        return stream

    def transform(self, places: Places, dtype: torch.dtype) -> Transform | None:
        """Return a function that self-attention applies to its queries and keys, or None."""
        return None

    def rotation(self, places: Places, dtype: torch.dtype) -> Tensor | None:
        """Return the sinusoids (T, d_k) of the angles by which queries and keys are rotated, or None."""
        return None

    def score_bias(self) -> ScoreBias | None:
        """Return a module that computes the numbers to add to the scores of one self-attention layer, or None."""
        return None

    def bias_parameters(self) -> int:
        """Return the number of parameters of `score_bias`."""
        return 0

    def bias_saved_numbers(self) -> int:
        """Return how many numbers of float32 per query token `score_bias` saves for backward."""
        return 0


def positions_of(config: ModelConfig) -> Positions:
    """Return the position encoding that the settings choose."""
    positions: Positions = load("model.positions", config.positions)(config)
    return positions
