"""The settings of translation and evaluation."""

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from nmt.config.checks import (
    MAY_NAME_A_FOLDER,
    NAMES_A_FILE,
    NOT_OF_THE_SEARCH,
    ONLY_TORCH,
    check_above_zero,
    check_at_least,
    check_between,
    check_choice,
    check_plain_name,
    marked,
    only_with,
)
from nmt.config.choices import CHOICES
from nmt.discovery import features, imported
from nmt.errors import ConfigError

BLEU_TOKENIZERS = (
    "auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none", "spm", "flores101", "flores200", "spBLEU-1K",
)  # fmt: skip
"""auto, and the names of sacreBLEU's tokenizers."""


FOR_SAMPLES = only_with("strategy", "sample", of="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """The search for translations, as in section 6.1 of the paper."""

    strategy: str = "beam"
    """How translations are found."""
    beam: int = field(default=4, metadata=only_with("strategy", "beam"))
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Most word pieces by which a translation may be longer than its source."""
    nbest: int = 1
    """Translations to write per sentence."""
    temperature: float = field(default=1.0, metadata=FOR_SAMPLES)
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: int = field(default=0, metadata=FOR_SAMPLES)
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: float = field(default=1.0, metadata=FOR_SAMPLES)
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    batch_tokens: int = field(default=4096, metadata=NOT_OF_THE_SEARCH)
    """Source tokens per batch."""
    ensemble: list[str] = field(default_factory=list, metadata={**ONLY_TORCH, **NOT_OF_THE_SEARCH})
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""

    alignments: bool = field(default=False, metadata={**ONLY_TORCH, **NOT_OF_THE_SEARCH})
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""

    @property
    def search(self) -> "DecodingConfig":
        """The settings of the search itself, if the strategy ranks what another one finds."""
        config = self
        for feature in features().values():
            if feature.search_settings:
                config = imported(feature.search_settings)(config)
        return config

    @property
    def in_words(self) -> str:
        """The search in a few words."""
        found = [imported(each.search_in_words)(self) for each in features().values() if each.search_in_words]
        usual = "sampled" if self.strategy == "sample" else f"beam {self.beam}, length penalty {self.alpha:g}"
        return next(filter(None, found), usual)

    @property
    def for_any_engine(self) -> "DecodingConfig":
        """The same settings without those that only engine=torch offers."""
        usual = type(self)()
        return replace(self, **{each.name: getattr(usual, each.name) for each in self._only_torch})

    @property
    def naming_no_file(self) -> "DecodingConfig":
        """The same settings without those that name files: a model from a stranger must not choose what is read."""
        usual = type(self)()
        named = (*marked(self, NAMES_A_FILE), *marked(self, MAY_NAME_A_FOLDER))
        try:
            return replace(self, **{name: getattr(usual, name) for name in named})
        except ConfigError:  # the strategy needs the file
            return replace(usual, beam=self.beam, alpha=self.alpha, extra_length=self.extra_length)

    @property
    def _only_torch(self) -> list[Field[Any]]:
        return [each for each in fields(self) if ONLY_TORCH.keys() & each.metadata.keys()]

    @property
    def torch_only(self) -> list[str]:
        """The names of the settings in use that only engine=torch offers."""
        return [each.name for each in self._only_torch if getattr(self, each.name) not in (each.default, [])]

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.strategy", self.strategy, CHOICES["decoding.strategy"])
        for name in ("beam", "nbest"):
            check_between(f"decoding.{name}", getattr(self, name), 1, 10_000)
        check_at_least("decoding.batch_tokens", self.batch_tokens, 1)
        check_between("decoding.alpha", self.alpha, 0, 10)
        check_between("decoding.extra_length", self.extra_length, 0, 1_000_000)
        check_at_least("decoding.top_k", self.top_k, 0)
        check_above_zero("decoding.temperature", self.temperature)
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""
    bleu_tokenizer: str = "auto"
    """sacreBLEU's tokenizer for BLEU, also in training's validation: auto (zh, ja-mecab and ko-mecab for Chinese,
    Japanese and Korean, 13a for all other languages), or another one, such as char, intl or flores200."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            check_plain_name("evaluation.splits", split)
            if self.splits.count(split) > 1:
                raise ConfigError(f"evaluation.splits names {split} twice: name each once")
        check_choice("evaluation.bleu_tokenizer", self.bleu_tokenizer, BLEU_TOKENIZERS)
