"""Position encodings, chosen by `model.positions`."""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.attention import ScoreBias, exact_type

MIN_TABLE_ROWS = 256
"""The smallest number of rows of a table of sinusoids."""

Transform = Callable[[Tensor], Tensor]
"""Rotates queries or keys (T, h, d_k) according to their positions."""

MAX_DISTANCE = 16
"""Distance, in word pieces, beyond which relative positions are all alike."""


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
    """Whether queries and keys of self-attention are rotated by the angles of `rotation`."""

    learned: ClassVar[bool] = False
    """Whether the model has a learned vector per position, of which there are `model.max_positions`, and side."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """Add positions to the scaled word vectors (T, d_model), given the learned position vectors, if any."""
        return stream

    def rotation(self, places: Places, dtype: torch.dtype) -> Tensor | None:
        """Return the sinusoids (T, d_k) of the angles by which queries and keys are rotated, or None."""
        return None

    def score_bias(self) -> ScoreBias | None:
        """Return a module that computes the numbers to add to the scores of one self-attention layer, or None."""
        return None


def positions_of(config: ModelConfig) -> Positions:
    """Return the position encoding that the settings choose."""
    positions: Positions = load("model.positions", config.positions)(config)
    return positions


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
    (`TranslationModel.build_position_tables`). Several threads may share it: each replaces the table only as a whole.
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


class Learned(Positions):
    """Add a learned vector per position and side to the word vectors."""

    learned: ClassVar[bool] = True

    def add(self, stream: Tensor, places: Places, table: Tensor | None) -> Tensor:
        """See `Positions.add`."""
        assert table is not None
        return stream + F.embedding(places.positions, table).to(stream.dtype)


class Rotary(Positions):
    """Rotate queries and keys by angles that grow with the position, so that scores depend on distances only."""

    rotates: ClassVar[bool] = True

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.sinusoids = SinusoidTable(config.key_size)

    def rotation(self, places: Places, dtype: torch.dtype) -> Tensor:
        """See `Positions.rotation`."""
        return self.sinusoids(places, dtype)


class Relative(Positions):
    """Add to each key a vector that is learned per layer and distance, and shared by the layer's heads."""

    biases_scores: ClassVar[bool] = True

    def score_bias(self) -> nn.Module:
        """See `Positions.score_bias`."""
        return RelativeKeys(self.config)


class RelativeKeys(nn.Module):
    """q_i a_d / sqrt(d_k), where a_d is the vector of the distance d = j - i, clipped to -k ... k."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.limit = MAX_DISTANCE
        self.vectors = nn.Parameter(torch.empty(2 * self.limit + 1, config.key_size))
        nn.init.xavier_uniform_(self.vectors)

    def forward(self, queries: Tensor, distances: Tensor) -> Tensor:
        """See `ScoreBias`."""
        products = torch.matmul(queries, self.vectors.T.to(queries.dtype))  # (..., h, Lq, 2k + 1)
        products = products / math.sqrt(queries.shape[-1])
        index = (distances.clamp(-self.limit, self.limit) + self.limit).unsqueeze(-3)
        return products.gather(-1, index.expand(*products.shape[:-1], index.shape[-1]))


class Alibi(Positions):
    """Lower the scores of distant keys, linearly in the distance and with a different slope in each head."""

    biases_scores: ClassVar[bool] = True

    def score_bias(self) -> nn.Module:
        """See `Positions.score_bias`."""
        return DistancePenalty()


class DistancePenalty(nn.Module):
    """-m |i - j|, with m = 2^(-8/h), 2^(-16/h), ... 2^-8 for the h heads; the same before and after a token."""

    def forward(self, queries: Tensor, distances: Tensor) -> Tensor:
        """See `ScoreBias`."""
        heads = queries.shape[-3]
        dtype = exact_type(queries)  # bfloat16 cannot distinguish all distances above 256
        slopes = torch.exp2(-8 / heads * torch.arange(1, heads + 1, device=queries.device, dtype=dtype))
        return -slopes[:, None, None] * distances.abs().unsqueeze(-3)
