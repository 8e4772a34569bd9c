"""Normalisations, chosen by `model.norm`."""

from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from nmt.config.choices import find
from nmt.config.schema import ModelConfig


class Norm(NamedTuple):
    """A normalisation over the width of the residual stream."""

    build: Callable[[int], nn.Module]
    """Makes a module for streams of the given width."""
    vectors: int
    """Learned vectors of that width."""


LAYER = Norm(nn.LayerNorm, vectors=2)
RMS = Norm(nn.RMSNorm, vectors=1)


def norm_of(config: ModelConfig) -> Norm:
    """Return the normalisation that the settings choose."""
    norm: Norm = find("model.norm", config.norm)
    return norm
