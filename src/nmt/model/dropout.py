"""Dropout whose random numbers cost little on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 1 << 16


class Dropout(nn.Module):
    """Zero each coordinate with a probability while training, and scale the others up to make up for it."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, stream: Tensor) -> Tensor:
        """The stream (..., d), some of it dropped."""
        if not self.training or not self.probability:
            return stream
        if stream.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(stream, self.probability)
        return stream * _noise(stream, self.probability)


def _noise(stream: Tensor, probability: float) -> Tensor:
    """0 with the probability, to 16 bits, else what keeps the mean.

    One random number of 64 bits serves four coordinates, where torch's own dropout draws one for each.
    """
    count = stream.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    lots = words.view(torch.int16)[:count].view(stream.shape)
    kept = lots >= round(probability * LEVELS) - LEVELS // 2
    return kept.to(stream.dtype).mul_(1 / (1 - probability))
