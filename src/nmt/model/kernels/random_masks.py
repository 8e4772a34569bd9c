"""Dropout masks that are computed from a counter, so that the backward pass can compute them again.

Whether a coordinate is kept depends on a seed, the place of the dropout in the model (its site) and the coordinate's
index, and on nothing else: not on the device, the implementation or the order of the calls.
"""

import torch
from torch import Tensor

LEVELS = 1 << 31
"""Probabilities are rounded to this many levels."""
_WORD = (1 << 32) - 1


def threshold(probability: float) -> int:
    """Return the smallest number below LEVELS that keeps a coordinate."""
    return round(probability * LEVELS)


def keep_mask(like: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    """Return a boolean tensor of the shape of `like`, False with the given probability. `seed` is (1,) int64."""
    low, high = seed & _WORD, (seed >> 32) & _WORD
    first = mix(low ^ mix(torch.full_like(seed, site & _WORD)))
    second = mix(high ^ first)
    index = torch.arange(like.numel(), device=seed.device) & _WORD
    bits = mix(mix(index ^ first) ^ second)
    return (bits >> 1 >= threshold(probability)).view(like.shape)


def mix(word: Tensor) -> Tensor:
    """Mix the lower 32 bits of int64 numbers, so that each depends on all (Wellons' lowbias32)."""
    word = ((word ^ (word >> 16)) * 0x7FEB352D) & _WORD
    word = ((word ^ (word >> 15)) * 0x846CA68B) & _WORD
    return word ^ (word >> 16)
