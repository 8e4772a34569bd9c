"""Attention with linear biases (ALiBi, Press et al., 2022)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.model.attention import exact_type
from nmt.model.positions.base import Positions


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
