"""Normalisations, chosen by `model.norm`. Their statistics are in float32 or more, whatever the stream's precision."""

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.backends.chosen import backend


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


def build_norm(config: ModelConfig) -> nn.Module:
    """Build the normalisation over the width of the residual stream that the settings choose."""
    norm: nn.Module = load("model.norm", config.norm)(config.d_model)
    return norm


def final_norm(config: ModelConfig) -> nn.Module:
    """Build the normalisation after all layers, which only pre-norm has."""
    return build_norm(config) if config.norm_placement == "pre" else nn.Identity()
