"""The setting of the z-loss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import check_at_least

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class ZLossTraining:
    """The weight of the z-loss."""

    z_loss: float = 0.0
    """Weight of the squared logarithm of the softmax's denominator, which is added to the loss of each token, such as
    1e-4; 0 for none."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_at_least("training.z_loss", self.z_loss, 0)


def uses(config: "Config") -> Iterator[Use]:
    """Say that every label has one row of logits, and that the logits are computed twice."""
    if config.of(ZLossTraining).z_loss:
        yield Use("training.z_loss", needs=frozenset({Capability.ONE_PASS, Capability.UNCOMPILED_MODEL}))
