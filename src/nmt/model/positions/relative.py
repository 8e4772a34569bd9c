"""Relative positions (Shaw et al., 2018): learned vectors of clipped distances, added to the keys."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.positions.base import Positions


class Relative(Positions):
    """Add to each key a vector that is learned per layer and distance, and shared by the layer's heads."""

    biases_scores: ClassVar[bool] = True

    def score_bias(self) -> nn.Module:
        """See `Positions.score_bias`."""
        return RelativeKeys(self.config)

    def bias_parameters(self) -> int:
        """See `Positions.bias_parameters`."""
        return self._distances * self.config.key_size

    def bias_saved_numbers(self) -> int:
        """See `Positions.bias_saved_numbers`: the queries, and their products with all vectors."""
        return self.config.heads * (self.config.key_size + self._distances)

    @property
    def _distances(self) -> int:
        return 2 * self.config.max_relative_distance + 1


class RelativeKeys(nn.Module):
    """q_i a_d / sqrt(d_k), where a_d is the vector of the distance d = j - i, clipped to -k ... k."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.limit = config.max_relative_distance
        self.vectors = nn.Parameter(torch.empty(2 * self.limit + 1, config.key_size))
        nn.init.xavier_uniform_(self.vectors)

    def forward(self, queries: Tensor, distances: Tensor) -> Tensor:
        """See `ScoreBias`."""
        products = torch.matmul(queries, self.vectors.T.to(queries.dtype)) / math.sqrt(
            queries.shape[-1]
        )  # (..., h, Lq, 2k + 1)
        index = (distances.clamp(-self.limit, self.limit) + self.limit).unsqueeze(-3)
        return products.gather(-1, index.expand(*products.shape[:-1], index.shape[-1]))
