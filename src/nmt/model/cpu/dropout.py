"""Dropout whose random numbers cost little on a CPU."""

import threading
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 1 << 16


class _Randomness(threading.local):
    generator: torch.Generator | None = None
    """Where a thread's random numbers come from; None is torch's own generator, which all threads share."""


_randomness = _Randomness()


def seed_thread_dropout(seed: int) -> None:
    """Give this thread random numbers of its own, for dropout on a CPU; the same as torch.manual_seed would."""
    _randomness.generator = torch.Generator().manual_seed(seed)


class Dropout(nn.Module):
    """Zero each coordinate with a probability while training, and scale the others up to make up for it."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, stream: Tensor) -> Tensor:
        """The stream (..., d), some of it dropped."""
        if not self.training or not self.probability:
            return stream
        if not _by_hand(stream):
            return F.dropout(stream, self.probability)
        return (stream * _kept(stream, self.probability)).mul_(1 / (1 - self.probability))

    def add(self, stream: Tensor, branch: Tensor) -> Tensor:
        """The stream plus what Dropout leaves of a branch (..., d), in one pass."""
        if not self.training or not self.probability or not _by_hand(branch):
            return stream + self.forward(branch)
        kept = _kept(branch, self.probability)
        return cast(Tensor, _AddKept.apply(stream, branch, kept, 1 / (1 - self.probability)))  # type: ignore[no-untyped-call]


def _by_hand(stream: Tensor) -> bool:
    return stream.device.type == "cpu" and not torch.compiler.is_compiling()


def _kept(stream: Tensor, probability: float) -> Tensor:
    """0 with the probability, to 16 bits, else 1.

    One random number of 64 bits serves four coordinates, where torch's own dropout draws one for each; and whole
    numbers make way from lots to zeros and ones, as booleans take several times as long.
    """
    count = stream.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=_randomness.generator)
    lots = words.view(torch.int16)[:count].view(stream.shape)
    first_kept = round(probability * LEVELS) - LEVELS // 2
    return lots.clamp_(first_kept - 1, first_kept).sub_(first_kept - 1).to(stream.dtype)


class _AddKept(torch.autograd.Function):
    """stream + scale * branch * kept."""

    @staticmethod
    def forward(ctx: Any, stream: Tensor, branch: Tensor, kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return torch.addcmul(stream, branch, kept, value=scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return gradient, (gradient.to(kept.dtype) * kept).mul_(ctx.scale), None, None
