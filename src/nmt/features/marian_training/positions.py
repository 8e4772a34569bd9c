"""Marian's sinusoidal positions."""

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig
from nmt.model.positions.sinusoidal import Sinusoidal, SinusoidTable, sinusoids_of


class MarianSinusoids(Sinusoidal):
    """The paper's sinusoids with Marian's frequencies, the slowest of which is exactly 1/10000."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.sinusoids = SinusoidTable(config.d_model, marian_sinusoids)


def marian_sinusoids(length: int, width: int) -> Tensor:
    """Return sin(pos / 10000^(i/(width/2 - 1))) and cos(the same) in turn: (length, width), float64."""
    pairs = width // 2
    return sinusoids_of(length, 10_000 ** (-torch.arange(pairs, dtype=torch.float64) / (pairs - 1)))
