"""Sinusoidal positions (section 3.5 of the paper)."""

import torch
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.model.positions.base import Places, Positions

MIN_TABLE_ROWS = 256
"""The smallest number of rows of a table of sinusoids."""


class Sinusoidal(Positions):
    """Add fixed sinusoids to the word vectors."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.sinusoids = SinusoidTable(config.d_model)

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """Return the scaled word vectors (T, d_model) plus the sinusoids of their places; nothing is learned."""
        return stream + self.sinusoids(places, stream.dtype)


def sinusoids(length: int, width: int) -> Tensor:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(the same): (length, width), float64."""
    frequencies = 10_000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class SinusoidTable:
    """A table of sinusoids, recomputed only for longer sentences, another device or another precision.

    A compiled model would need another graph for a larger table, so the table is filled before the model is compiled
    (`BaseModel.build_position_tables`). Several threads may share it: each replaces the table only as a whole.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.table = torch.empty(0, width)

    def __call__(self, places: Places, dtype: torch.dtype) -> Tensor:
        """Return the rows (T, width) of the tokens' positions, which are all below `places.longest`."""
        table, device = self.table, places.positions.device
        if len(table) < places.longest or table.device != device or table.dtype != dtype:
            length = max(MIN_TABLE_ROWS, 1 << (places.longest - 1).bit_length())
            with torch.inference_mode(False):  # training may use the table that decoding made
                self.table = table = sinusoids(length, self.width).to(device, dtype)
        return table.index_select(0, places.positions)
