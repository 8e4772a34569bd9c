"""The settings of minimum Bayes risk."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from nmt.config.checks import check_between, check_choice, only_with
from nmt.config.choices import CHOICES
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import DecodingConfig

STRATEGY = "mbr"
"""The value of `decoding.strategy`."""
FOR_RISK = only_with("strategy", STRATEGY)


@dataclass(frozen=True, kw_only=True)
class RiskDecoding:
    """How candidates are found and compared."""

    candidates: int = field(default=64, metadata=FOR_RISK)
    """Candidates per sentence for minimum Bayes risk."""
    candidates_by: str = field(default="sample", metadata=FOR_RISK)
    """How candidates are found: sample (narrowed by top_k, top_p and temperature), or beam."""
    utility: str = field(default="chrf", metadata=FOR_RISK)
    """Agreement of two candidates for minimum Bayes risk."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.candidates_by", self.candidates_by, ("sample", "beam"))
        check_choice("decoding.utility", self.utility, CHOICES["decoding.utility"])
        check_between("decoding.candidates", self.candidates, 1, 10_000)
        config = cast("DecodingConfig", self)
        if config.strategy == STRATEGY and config.nbest > self.candidates:
            raise ConfigError(f"decoding.nbest={config.nbest} is more than decoding.candidates={self.candidates}")


def search_for_candidates(config: "DecodingConfig") -> "DecodingConfig":
    """Return the settings of the search for candidates."""
    if config.strategy != STRATEGY:
        return config
    risk = cast(RiskDecoding, config)
    return replace(config, strategy=risk.candidates_by, beam=risk.candidates, nbest=risk.candidates)


def in_words(config: "DecodingConfig") -> str:
    """Name the search; empty if it is another one."""
    risk = cast(RiskDecoding, config)
    return f"minimum Bayes risk ({risk.utility}) of {risk.candidates} candidates" if config.strategy == STRATEGY else ""
