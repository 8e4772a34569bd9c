"""Normalisations, chosen by `model.norm`. Their statistics are in float32 or more, whatever the stream's precision."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.backends.chosen import backend


class Norm(NamedTuple):
    """A normalisation over the width of the residual stream."""

    build: Callable[[int], nn.Module]
    """Makes a module for streams of the given width."""
    vectors: int
    """Learned vectors of that width."""


class LayerNorm(nn.LayerNorm):
    """Layer normalisation with float32 gains of a stream in any precision."""

    def forward(self, stream: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model), in the same precision."""
        return backend().norm(stream, self)


class RMSNorm(nn.RMSNorm):
    """Normalisation by the root mean square, with float32 gains of a stream in any precision."""

    def forward(self, stream: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model), in the same precision."""
        return backend().norm(stream, self)


LAYER = Norm(LayerNorm, vectors=2)
RMS = Norm(RMSNorm, vectors=1)


def norm_of(config: ModelConfig) -> Norm:
    """Return the normalisation that the settings choose."""
    norm: Norm = load("model.norm", config.norm)
    return norm
