"""Rotary positions (Su et al., 2021)."""

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.model.backends.chosen import backend
from nmt.model.positions.base import Places, Positions, Transform
from nmt.model.positions.sinusoidal import SinusoidTable


class Rotary(Positions):
    """Rotate queries and keys by angles that grow with the position, so that scores depend on distances only."""

    rotates: ClassVar[bool] = True

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.sinusoids = SinusoidTable(config.key_size)

    def transform(self, places: Places, dtype: torch.dtype) -> Transform:
        """See `Positions.transform`."""
        return partial(backend().rotate, rotation=self.rotation(places, dtype))

    def rotation(self, places: Places, dtype: torch.dtype) -> Tensor:
        """See `Positions.rotation`."""
        return self.sinusoids(places, dtype)
