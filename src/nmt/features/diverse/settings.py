"""The settings of diverse beam search."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import CONTROL, ONLY_TORCH, check_at_least, needs
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import DecodingConfig


@dataclass(frozen=True, kw_only=True)
class DiverseDecoding:
    """Into how many groups the beam is divided, and how much these differ."""

    groups: int = field(default=1, metadata={**ONLY_TORCH, **CONTROL})
    """Groups into which the beam is divided; each avoids the word pieces that the groups before it have just chosen."""
    diversity: float = field(default=0.5, metadata=needs("groups"))
    """How much: the log-probability that a word piece loses for each hypothesis that has just chosen it."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_at_least("decoding.groups", self.groups, 1)
        check_at_least("decoding.diversity", self.diversity, 0)
        config = cast("DecodingConfig", self)
        if self.groups > 1 and config.search.strategy != "beam":
            raise ConfigError("decoding.groups needs a beam: samples cannot have groups")
        if config.search.beam % self.groups:
            raise ConfigError(f"decoding.groups={self.groups} does not divide the beam of {config.search.beam}")
