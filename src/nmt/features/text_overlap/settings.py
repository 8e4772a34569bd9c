"""The settings of the filters that compare the training text with the development and test text."""

from dataclasses import dataclass

from nmt.config.checks import check_between, check_choice
from nmt.errors import ConfigError

PAIR, SIDE = "pair", "side"
WORDS = 8
"""The default of `overlap_words`."""


@dataclass(frozen=True, kw_only=True)
class OverlapData:
    """Which training pairs are dropped because they are also in a development or test set."""

    drop_overlap: str = ""
    """Drop training pairs that are also in a development or test set, without regard to case and punctuation: pair if
    both sides are those of a pair there, side if one of the sides is a sentence there; empty keeps them."""
    overlap_share: float = 0.0
    """Drop training pairs with a side that contains at least this share of the runs of words of a development or test
    sentence; 0 does not check. 0.5 drops most copies with changes, 0.01 whatever has one run in common."""
    overlap_words: int = WORDS
    """Words in a run, for overlap_share."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.drop_overlap:
            check_choice("data.drop_overlap", self.drop_overlap, (PAIR, SIDE))
        if not 0 <= self.overlap_share <= 1:
            raise ConfigError(f"data.overlap_share={self.overlap_share} must be at least 0 and at most 1")
        check_between("data.overlap_words", self.overlap_words, 2, 100)
        if self.overlap_words != WORDS and not self.overlap_share:
            raise ConfigError(
                f"data.overlap_words={self.overlap_words} has no effect without data.overlap_share: set it to 0.5, say"
            )
