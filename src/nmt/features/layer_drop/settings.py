"""The setting of LayerDrop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import DROPS
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config, ModelConfig


@dataclass(frozen=True, kw_only=True)
class SkippingModel:
    """How often training skips a layer."""

    layer_drop: float = field(default=0.0, metadata=DROPS)
    """Probability with which training skips a whole layer, in each micro-batch anew (LayerDrop)."""


def probability(model: "ModelConfig") -> float:
    """Return the probability with which training skips a layer; 0 if it skips none."""
    return cast(SkippingModel, model).layer_drop


def check(config: "Config") -> None:
    """Refuse a compiled model, whose graph has all layers."""
    if config.runtime.compile and probability(config.model):
        raise ConfigError(
            "runtime.compile=true cannot skip layers at random: set it to false, or model.layer_drop to 0"
        )


def uses(config: "Config") -> Iterator[Use]:
    """Say that a layer may be missing from a step."""
    if probability(config.model):
        yield Use("model.layer_drop", takes=frozenset({Capability.EVERY_LAYER}))
