"""Where a token stands in its sentence (section 3.5 of the paper)."""

import torch
from torch import Tensor


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(the same): (length, width), float64."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    frequencies = 10_000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class SinusoidTable:
    """Sinusoids worked out once, and again only for longer sentences, another device or another precision."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.table = torch.empty(0, width)

    def __call__(self, positions: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
        """The rows of `positions` (T,), all below `longest`: (T, width)."""
        table = self.table  # read once: another thread may replace it at any moment
        if len(table) < longest or table.device != positions.device or table.dtype != dtype:
            length = max(256, 1 << (longest - 1).bit_length())
            self.table = table = sinusoids(length, self.width).to(positions.device, dtype)
        return table.index_select(0, positions)


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Turn pairs of coordinates by an angle that grows with the position, so that only distances count.

    Heads (T, h, d_k), and the sinusoids (T, d_k) of the tokens' positions.
    """
    sine, cosine = rotation[:, None, 0::2].to(heads.dtype), rotation[:, None, 1::2].to(heads.dtype)
    even, odd = heads[..., 0::2], heads[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
