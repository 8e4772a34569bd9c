"""The setting of the loss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import check_at_least

if TYPE_CHECKING:
    from nmt.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class NumbersTraining:
    """The weight of the confidence penalty."""

    confidence_penalty: float = 0.0
    """Weight of the negative entropy of each prediction, which is added to the loss; 0 for none."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_at_least("training.confidence_penalty", self.confidence_penalty, 0)


def uses(config: "Config") -> Iterator[Use]:
    """Say that the term needs one row of logits per label."""
    if config.of(NumbersTraining).confidence_penalty:
        needed = frozenset({Capability.ONE_PASS, Capability.UNCOMPILED_MODEL})
        yield Use("training.confidence_penalty", needs=needed)
