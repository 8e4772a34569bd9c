"""What a position encoding can do. Each encoding has a file beside this one and is chosen by `model.positions`."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config.choices import find
from nmt.config.schema import ModelConfig

Transform = Callable[[Tensor], Tensor]
"""Changes queries or keys (T, h, d_k) according to their positions."""


class Places(NamedTuple):
    """Where the tokens of a stream stand in their sentences."""

    positions: Tensor
    """(T,) counted from 0."""
    longest: int
    """All positions are below this."""


class Positions:
    """A position encoding. Subclasses override the hooks they need; the defaults change nothing."""

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


def positions_of(config: ModelConfig) -> Positions:
    """Return the position encoding that the settings choose."""
    positions: Positions = find("model.positions", config.positions)(config)
    return positions
