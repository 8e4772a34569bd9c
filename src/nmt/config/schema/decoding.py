"""The settings of translation and evaluation."""

from dataclasses import dataclass, field

from nmt.config.checks import check_at_least, check_between, check_choice, check_plain_name
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """Beam search, as in section 6.1 of the paper, or sampling."""

    strategy: str = "beam"
    """beam (search), or sample (draw `nbest` random translations, reproducible by `seed`)."""
    beam: int = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Most word pieces by which a translation may be longer than its source."""
    well_formed: bool = False
    """Trees only: search only well-formed trees over the words of the sentence."""
    nbest: int = 1
    """Translations to write per sentence."""
    batch_tokens: int = 4096
    """Source tokens per batch."""
    temperature: float = 1.0
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: int = 0
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: float = 1.0
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    ensemble: list[str] = field(default_factory=list)
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.strategy", self.strategy, ("beam", "sample"))
        for name in ("beam", "nbest"):
            check_between(f"decoding.{name}", getattr(self, name), 1, 10_000)
        check_at_least("decoding.batch_tokens", self.batch_tokens, 1)
        check_between("decoding.alpha", self.alpha, 0, 10)
        check_between("decoding.extra_length", self.extra_length, 0, 1_000_000)
        check_at_least("decoding.top_k", self.top_k, 0)
        if not self.temperature > 0:
            raise ConfigError(f"decoding.temperature={self.temperature} must be above 0")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""
    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            check_plain_name("evaluation.splits", split)
