"""The settings of models for Marian."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class MarianTraining:
    """How a translation begins."""

    zero_start: bool = False
    """Keep the word vector with which translations begin at zero, as Marian's decoder begins with a zero vector."""


def check(config: "Config") -> None:
    """Make sure that the coordinates are pairs and at least two, as Marian's frequencies need."""
    model = config.model
    if model.positions == "marian" and (model.d_model % 2 or model.d_model < 4):
        raise ConfigError(f"model.d_model={model.d_model} must be even and at least 4 for model.positions=marian")


def uses(config: "Config") -> Iterator[Use]:
    """Say that a row of the word vectors is set to zero after each step."""
    if config.of(MarianTraining).zero_start:
        needs = frozenset({Capability.WHOLE_WEIGHTS, Capability.TRAINED_VECTORS})
        yield Use("training.zero_start=true", needs)
