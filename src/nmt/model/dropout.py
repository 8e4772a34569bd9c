"""Dropout, and the random numbers that decide about it."""

import threading
from collections.abc import Iterable

import torch
from torch import Tensor, nn

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
    """Return the random numbers of this thread; None are torch's own."""
    return _randomness.generator


class Dropout(nn.Module):
    """Zeroing each coordinate with a given probability while training; the others are scaled up to compensate.

    The backend computes it, alone or together with what stands next to it.
    """

    seed: Tensor

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.register_buffer("seed", torch.zeros(1, dtype=torch.int64, device="cpu"), persistent=False)
        self.site = 0
        """The number of this dropout in the model. In Triton's kernels, it and the common seed determine the mask."""

    @property
    def rate(self) -> float:
        """The probability to zero a coordinate now."""
        return self.probability if self.training else 0.0


def share_seed(modules: Iterable[nn.Module], device: torch.device) -> Tensor:
    """Number the dropouts among a model's modules, and return the seed (1,) of their masks on a GPU.

    The trainer sets the seed before each micro-batch.
    """
    seed = torch.zeros(1, dtype=torch.int64, device=device)
    for site, dropout in enumerate(module for module in modules if isinstance(module, Dropout)):
        dropout.seed, dropout.site = seed, site
    return seed


def dropout_mask(like: Tensor, probability: float) -> Tensor:
    """Return a mask of the shape of `like`: 0 with the given probability, rounded to 16 bits on a CPU, else 1.

    Random draws become 0/1 masks by integer arithmetic: comparing to booleans and multiplying is several times slower.
    """
    if like.device.type != "cpu" or torch.compiler.is_compiling():
        return torch.empty_like(like).bernoulli_(1 - probability)
    first = first_kept(probability)
    return random_numbers(like).clamp_(first - 1, first).sub_(first - 1).to(like.dtype)


def random_numbers(like: Tensor) -> Tensor:
    """Return a random int16 for each coordinate on a CPU.

    One 64-bit random number serves four coordinates; torch's own dropout draws one per coordinate.
    """
    count = like.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=thread_generator())
    return words.view(torch.int16)[:count].view(like.shape)


def first_kept(probability: float) -> int:
    """Return the smallest int16 that keeps a coordinate."""
    return min(max(round(probability * LEVELS), 1), LEVELS - 1) - LEVELS // 2
