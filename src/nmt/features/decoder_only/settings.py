"""The settings of a decoder-only model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from nmt.config.capabilities import Capability, Use
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config, ModelConfig

DECODER_ONLY = "decoder_only"
"""The value of `model.architecture`."""


@dataclass(frozen=True, kw_only=True)
class PrefixModel:
    """How source tokens attend to each other."""

    prefix_attention: bool = False
    """Decoder-only: let source tokens see later source tokens, too."""

    def __post_init__(self) -> None:
        """Refuse settings that do not fit the architecture."""
        model = cast("ModelConfig", self)
        if self.prefix_attention and model.architecture != DECODER_ONLY:
            raise ConfigError("model.prefix_attention=true is for model.architecture=decoder_only")
        if model.architecture == DECODER_ONLY and model.encoder_layers:
            raise ConfigError(
                f"model.encoder_layers={model.encoder_layers}, but model.architecture=decoder_only has no encoder: "
                "set model.decoder_layers or model.layers"
            )
        if model.architecture == DECODER_ONLY and model.positions == "learned":
            raise ConfigError(
                "model.positions=learned counts the positions of each side, but model.architecture=decoder_only has "
                "one stream: choose other positions, such as sinusoidal"
            )


def sees_whole_source(model: "ModelConfig") -> bool:
    """Return whether source tokens see later source tokens."""
    return cast(PrefixModel, model).prefix_attention


def uses(config: "Config") -> Iterator[Use]:
    """Say that a decoder-only model has no cross-attention."""
    if config.model.architecture == DECODER_ONLY:
        yield Use("model.architecture=decoder_only", takes=frozenset({Capability.CROSS_ATTENTION}))
