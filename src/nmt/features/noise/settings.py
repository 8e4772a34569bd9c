"""The settings of noise on the training text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use, is_needed, is_taken
from nmt.config.checks import check_between, check_fraction
from nmt.config.choices import is_text
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config


BPE_DROPOUT, MIN_PASSES = 0.1, 50
"""The probability of Provilkov et al. (2020), and the passes over a text from which it makes a better model."""


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


def check(config: "Config") -> None:
    """Make sure that noise fits the tokenizer and the text."""
    noise, target = config.of(NoiseConfig), config.data.target_lang
    for side in ("source", "target"):
        share, symbols = getattr(noise, f"bpe_dropout_{side}"), side == "target" and not is_text(target)
        # the type of the tokenizer of another model is known later
        other_type = config.tokenizer.model_type != "bpe" and not is_taken(config, Capability.OWN_TOKENIZER)
        if share and (symbols or other_type):
            raise ConfigError(
                f"noise.bpe_dropout_{side}={share} needs text in pieces of BPE: set it to 0"
                + ("" if symbols else ", or tokenizer.model_type=bpe")
            )
    if not is_text(target) and (noise.upper_case or noise.title_case):
        raise ConfigError(f"noise.upper_case and noise.title_case need text on both sides, not {target}: set them to 0")


def bpe_dropout_for(config: "Config", passes: float) -> float:
    """Return the probability that suits a number of passes over the training text, on both sides."""
    words_may_change = not is_needed(config, Capability.WORDS_AS_WRITTEN)
    suits = config.tokenizer.model_type == "bpe" and words_may_change
    return BPE_DROPOUT if suits and passes >= MIN_PASSES else 0.0


def uses(config: "Config") -> Iterator[Use]:
    """Say that noise changes the words."""
    if config.of(NoiseConfig) != NoiseConfig():
        yield Use("noise", takes=frozenset({Capability.WORDS_AS_WRITTEN}))
