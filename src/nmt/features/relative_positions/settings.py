"""The setting of relative positions."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import SEEN_IN_WEIGHTS, check_at_least, only_with

if TYPE_CHECKING:
    from nmt.config.schema import ModelConfig


@dataclass(frozen=True, kw_only=True)
class RelativeModel:
    """Which distances relative positions distinguish."""

    max_relative_distance: int = field(default=16, metadata={**SEEN_IN_WEIGHTS, **only_with("positions", "relative")})
    """Distance, in word pieces, beyond which relative positions are all alike."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_at_least("model.max_relative_distance", self.max_relative_distance, 1)


def max_distance(model: "ModelConfig") -> int:
    """Return the distance beyond which relative positions are all alike."""
    return cast(RelativeModel, model).max_relative_distance
