"""The setting of R-Drop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import check_at_least
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class RDropTraining:
    """The weight of R-Drop."""

    r_drop: float = 0.0
    """Weight of R-Drop: every batch is computed twice with different dropout masks, and this weight of the divergence
    between both predictions is added to the loss. The paper takes 5; 0 computes batches once."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_at_least("training.r_drop", self.r_drop, 0)


def weight(config: "Config") -> float:
    """Return the weight of R-Drop; 0 if it is off."""
    return config.of(RDropTraining).r_drop


def check(config: "Config") -> None:
    """Make sure that the two passes differ."""
    model = config.model
    if weight(config) and not (model.dropout or model.attention_dropout or model.activation_dropout):
        raise ConfigError(f"training.r_drop={weight(config)} needs dropout: set model.dropout above 0")


def uses(config: "Config") -> Iterator[Use]:
    """Say that batches are computed twice, with a loss of its own."""
    if weight(config):
        own = frozenset({Capability.OWN_LOSS})
        yield Use("training.r_drop", needs=own, takes=own | {Capability.ONE_PASS})
