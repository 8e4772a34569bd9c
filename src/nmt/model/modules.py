"""Linear layers and normalisations (`model.norm`), as the backend computes them; statistics are at least float32."""

from collections.abc import Mapping

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.config.registry import load
from nmt.model.backends.chosen import backend

Copies = Mapping[str, Tensor]
"""Copies of a module's parameters in another precision, by the names of the parameters (`model.working_weights`)."""


class Linear(nn.Linear):
    """x W^T + b, as the backend of this process computes it."""

    copies: Copies | None = None

    def forward(self, rows: Tensor) -> Tensor:
        """(T, d_in) to (T, d_out)."""
        return backend().linear(rows, self)


class _ByBackend(nn.Module):
    def forward(self, stream: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model), in the same precision."""
        return backend().norm(stream, self)


class LayerNorm(_ByBackend, nn.LayerNorm):
    """Layer normalisation with float32 gains of a stream in any precision."""


class RMSNorm(_ByBackend, nn.RMSNorm):
    """Normalisation by the root mean square, with float32 gains of a stream in any precision."""


KNOWN_NORMS = (LayerNorm, RMSNorm)
"""Norms that the operations in C and the kernels in Triton compute; a subclass may compute something else."""


def build_norm(config: ModelConfig) -> nn.Module:
    """Build the normalisation over the width of the residual stream that the settings choose."""
    norm: nn.Module = load("model.norm", config.norm)(config.d_model)
    return norm


def final_norm(config: ModelConfig) -> nn.Module:
    """Build the normalisation after all layers, which only pre-norm has."""
    return build_norm(config) if config.norm_placement == "pre" else nn.Identity()
