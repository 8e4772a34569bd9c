"""The settings of noise on the training text."""

from dataclasses import dataclass

from nmt.config.checks import check_between, check_fraction
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseConfig:
    """Random changes of the training text, drawn anew in each epoch; all are off at 0."""

    bpe_dropout_source: float = 0.0
    """Probability with which each merge of a source word is left out at each step of BPE (BPE-dropout)."""
    bpe_dropout_target: float = 0.0
    """The same for target words."""
    word_dropout: float = 0.0
    """Share of source words whose pieces are replaced by the unknown piece."""
    upper_case: float = 0.0
    """Share of pairs in upper case, on both sides."""
    title_case: float = 0.0
    """Share of pairs in title case, on both sides."""
    typos: float = 0.0
    """Share of source words with a typo: a letter left out or doubled, or two letters swapped."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("bpe_dropout_source", "bpe_dropout_target", "word_dropout"):
            check_fraction(f"noise.{name}", getattr(self, name))
        for name in ("upper_case", "title_case", "typos"):
            check_between(f"noise.{name}", getattr(self, name), 0, 1)
        if self.upper_case + self.title_case > 1:
            raise ConfigError(
                f"noise.upper_case={self.upper_case} and noise.title_case={self.title_case} are shares of the same "
                "pairs, so they add up to at most 1: lower one of them"
            )
