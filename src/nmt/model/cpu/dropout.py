"""Dropout that is cheap on a CPU."""

import threading
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.kernels.backend import has_fused_residual
from nmt.model.kernels.c.library import LANES, trains_in_c
from nmt.model.kernels.c.residual import Draws, add_dropped, add_norm, drop
from nmt.model.kernels.residual import dropout_add, dropout_add_norm

LEVELS = 1 << 16
"""Probabilities are rounded to this many levels on a CPU."""


class _Randomness(threading.local):
    generator: torch.Generator | None = None
    """This thread's generator; None is torch's own, which all threads share."""


_randomness = _Randomness()


def seed_thread_dropout(seed: int) -> None:
    """Give this thread its own random numbers for dropout on a CPU: those that torch.manual_seed would give."""
    _randomness.generator = torch.Generator().manual_seed(seed)


def thread_generator() -> torch.Generator | None:
    """Return this thread's generator of random numbers on a CPU; None is torch's own."""
    return _randomness.generator


class Dropout(nn.Module):
    """Zero each coordinate with a given probability while training, and scale up the others to compensate."""

    seed: Tensor

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.register_buffer("seed", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.site = 0
        """The number of this dropout in the model. On a GPU, it and the common seed determine the mask."""

    def forward(self, stream: Tensor) -> Tensor:
        """Return the stream (..., d) with some coordinates zeroed."""
        if not self.training or not self.probability:
            return stream
        if not _on_cpu(stream):
            return F.dropout(stream, self.probability)
        if _in_c(stream):
            return drop(stream, self._draws_for(stream))
        return (stream * _mask(stream, self.probability)).mul_(1 / (1 - self.probability))

    @property
    def draw(self) -> tuple[float, Tensor, int]:
        """The probability to zero a coordinate now, the seed, and the site."""
        return self.probability if self.training else 0.0, self.seed, self.site

    def add(self, stream: Tensor, branch: Tensor) -> Tensor:
        """Return stream + Dropout(branch), both (..., d), in one pass."""
        if not self.training or not self.probability:
            return stream + branch
        if has_fused_residual(branch.device):
            return dropout_add(stream, branch, *self.draw)
        if not _on_cpu(branch):
            return stream + self.forward(branch)
        if _in_c(branch) and stream.dtype == branch.dtype:
            return add_dropped(stream, branch, self._draws_for(branch))
        mask = _mask(branch, self.probability)
        return cast(Tensor, _AddMasked.apply(stream, branch, mask, 1 / (1 - self.probability)))  # type: ignore[no-untyped-call]

    def add_norm(self, stream: Tensor, branch: Tensor, norm: nn.Module) -> Tensor:
        """Return norm(stream + Dropout(branch)), both (..., d), in one pass if that is a LayerNorm."""
        if isinstance(norm, nn.LayerNorm) and has_fused_residual(stream.device):
            return dropout_add_norm(stream, branch, norm.weight, norm.bias, *self.draw, norm.eps)
        if isinstance(norm, nn.LayerNorm) and self.training and self.probability and _norms_in_c(stream, norm):
            return add_norm(stream, branch, norm, self._draws_for(branch))
        return cast(Tensor, norm(self.add(stream, branch)))

    def _draws_for(self, stream: Tensor) -> Draws:
        return Draws(_random_numbers(stream), _first_kept(self.probability), 1 / (1 - self.probability))


def dropout_mask(like: Tensor, probability: float) -> Tensor:
    """Return a mask of the shape of `like`: 0 with the given probability, else 1."""
    if _on_cpu(like):
        return _mask(like, probability)
    return torch.empty_like(like).bernoulli_(1 - probability)


def share_seed(modules: Iterable[nn.Module], device: torch.device) -> Tensor:
    """Number the dropouts among a model's modules, and return the seed (1,) of their masks on a GPU.

    The trainer sets the seed before each micro-batch.
    """
    seed = torch.zeros(1, dtype=torch.int64, device=device)
    for site, dropout in enumerate(module for module in modules if isinstance(module, Dropout)):
        dropout.seed, dropout.site = seed, site
    return seed


def _on_cpu(stream: Tensor) -> bool:
    return stream.device.type == "cpu" and not torch.compiler.is_compiling()


def _in_c(stream: Tensor) -> bool:
    return trains_in_c(stream) and stream.numel() % LANES == 0


def _norms_in_c(stream: Tensor, norm: nn.LayerNorm) -> bool:
    return trains_in_c(stream) and stream.shape[-1] % LANES == 0 and norm.weight.dtype == torch.float32


def _mask(stream: Tensor, probability: float) -> Tensor:
    """Return 0 with the given probability, rounded to 16 bits, else 1, for each coordinate.

    One 64-bit random number serves four coordinates; torch's own dropout draws one per coordinate. Random draws become
    0/1 masks by integer arithmetic: comparing to booleans and multiplying is several times slower.
    """
    first = _first_kept(probability)
    return _random_numbers(stream).clamp_(first - 1, first).sub_(first - 1).to(stream.dtype)


def _random_numbers(stream: Tensor) -> Tensor:
    """Return a random int16 for each coordinate."""
    count = stream.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=thread_generator())
    return words.view(torch.int16)[:count].view(stream.shape)


def _first_kept(probability: float) -> int:
    """Return the smallest int16 that keeps a coordinate."""
    return min(max(round(probability * LEVELS), 1), LEVELS - 1) - LEVELS // 2


class _AddMasked(torch.autograd.Function):
    """stream + scale * branch * mask."""

    @staticmethod
    def forward(ctx: Any, stream: Tensor, branch: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return torch.addcmul(stream, branch, mask, value=scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return gradient, (gradient.to(mask.dtype) * mask).mul_(ctx.scale), None, None
