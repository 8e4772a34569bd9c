"""Activations of the feed-forward layers, chosen by `model.activation`."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.config.registry import load


class Activation(NamedTuple):
    """The nonlinearity between the two products of a feed-forward layer."""

    function: Callable[[Tensor], Tensor]
    saved_tensors: int
    """Tensors of width d_ff that the layer saves for backward."""
    gated: bool = False
    """Whether the first product is twice as wide, and its second half is multiplied by the activated first half."""


RELU = Activation(F.relu, saved_tensors=1)
GELU = Activation(F.gelu, saved_tensors=2)
SWISH = Activation(F.silu, saved_tensors=2)
SWIGLU = Activation(F.silu, saved_tensors=4, gated=True)


def activation_of(config: ModelConfig) -> Activation:
    """Return the activation that the settings choose."""
    activation: Activation = load("model.activation", config.activation)
    return activation
