"""The settings of random translations."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.checks import ONLY_TORCH, check_above_zero, check_at_least, check_between, check_fraction, only_with
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import DecodingConfig

FOR_SAMPLES = only_with("strategy", "sample", of="search")


@dataclass(frozen=True, kw_only=True)
class SamplingDecoding:
    """What samples are drawn from, and noise."""

    noise: float = field(default=0.0, metadata=ONLY_TORCH)
    """Beam search: factor of random (Gumbel) noise that is added to the score of each word piece; 0 for none. `seed`
    and the sentence fix the noise."""
    temperature: float = field(default=1.0, metadata=FOR_SAMPLES)
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: int = field(default=0, metadata=FOR_SAMPLES)
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: float = field(default=1.0, metadata=FOR_SAMPLES)
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    epsilon: float = field(default=0.0, metadata={**ONLY_TORCH, **FOR_SAMPLES})
    """Sample only word pieces of at least this probability; 0 for all."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("decoding.noise", self.noise, 0, 10)
        check_at_least("decoding.top_k", self.top_k, 0)
        check_above_zero("decoding.temperature", self.temperature)
        if self.noise and cast("DecodingConfig", self).strategy != "beam":
            raise ConfigError("decoding.noise needs decoding.strategy=beam; for samples, set decoding.temperature")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        check_fraction("decoding.epsilon", self.epsilon)


def in_words(config: "DecodingConfig") -> str:
    """Name the search; empty if it is another one."""
    return "sampled" if config.strategy == "sample" else ""
