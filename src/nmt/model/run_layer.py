"""How a model runs its layers, which features may change."""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.config.registry import imported
from nmt.discovery import features

RunLayer = Callable[..., Tensor]
"""Returns a layer's output (T, d_model), given the layer, its stream (T, d_model) and its further inputs."""


def run_layer(layer: nn.Module, stream: Tensor, *inputs: object) -> Tensor:
    """Return a layer's output (T, d_model)."""
    output: Tensor = layer(stream, *inputs)
    return output


def layer_runner(config: ModelConfig) -> RunLayer:
    """Return how a model with these settings runs its layers."""
    run: RunLayer = run_layer
    for feature in features().values():
        if feature.layers:
            run = imported(feature.layers)(config, run)
    return run
