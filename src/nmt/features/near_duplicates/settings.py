"""The setting of the filter of near-duplicates."""

from dataclasses import dataclass

from nmt.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class NearDuplicateData:
    """What counts as nearly equal."""

    near_duplicates: float = 0.0
    """Drop training pairs that resemble an earlier one at least about this much: the share of the words and pairs of
    neighbouring words that both have, where all numbers are equal, and case and punctuation do not count. 0 is off; 0.7
    allows about one other word in ten."""

    def __post_init__(self) -> None:
        """Check the similarity."""
        if self.near_duplicates and not 0.3 <= self.near_duplicates <= 1:
            raise ConfigError(
                f"data.near_duplicates={self.near_duplicates} must be at least 0.3 and at most 1, or 0 to keep all"
            )
