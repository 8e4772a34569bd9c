"""The settings of translation and evaluation."""

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from nmt.config.checks import (
    CONTROL,
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
)
from nmt.config.registry import check_registered
from nmt.errors import ConfigError

BLEU_TOKENIZERS = (
    "auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none", "spm", "flores101", "flores200", "spBLEU-1K",
)  # fmt: skip
"""auto, and the names of sacreBLEU's tokenizers."""
STRATEGIES = ("beam", "sample", "mbr")
MBR = "mbr"
"""The value of `decoding.strategy` for minimum Bayes risk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """The search for translations, as in section 6.1 of the paper."""

    strategy: str = "beam"
    """How translations are found: by beam search, as a sample, or by the minimum Bayes risk of candidates (mbr)."""
    beam: int = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Most word pieces by which a translation may be longer than its source."""
    nbest: int = 1
    """Translations to write per sentence."""
    temperature: float = 1.0
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: int = 0
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: float = 1.0
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    batch_tokens: int = field(default=4096, metadata=NOT_OF_THE_SEARCH)
    """Source tokens per batch."""
    ensemble: list[str] = field(default_factory=list, metadata={**ONLY_TORCH, **NOT_OF_THE_SEARCH})
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""
    alignments: bool = field(default=False, metadata={**ONLY_TORCH, **NOT_OF_THE_SEARCH})
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""
    terms: str = field(default="", metadata={**ONLY_TORCH, **CONTROL, **NAMES_A_FILE})
    """File with a term, a tab and its translation on each line. If a term stands in a source line, its translation
    must stand in the translation of the line."""
    no_repeat_ngram: int = field(default=0, metadata=CONTROL)
    """No sequence of this many word pieces stands twice in a translation; 0 allows repetitions."""
    min_length: int = field(default=0, metadata=CONTROL)
    """Least word pieces per translation."""
    candidates: int = 64
    """Candidates per sentence for minimum Bayes risk: samples, narrowed by top_k, top_p and temperature."""
    utility: str = "chrf"
    """Agreement of two candidates for minimum Bayes risk."""
    comet: str = field(default="", metadata=MAY_NAME_A_FOLDER)
    """Model of COMET for `utility=comet`: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging
    Face. It needs the package unbabel-comet."""
    well_formed: bool = field(default=False, metadata=ONLY_TORCH)
    """Trees only: search only well-formed trees over the words of the sentence."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.strategy", self.strategy, STRATEGIES)
        check_registered("decoding.utility", self.utility)
        for name in ("beam", "nbest", "candidates"):
            check_between(f"decoding.{name}", getattr(self, name), 1, 10_000)
        check_at_least("decoding.batch_tokens", self.batch_tokens, 1)
        check_between("decoding.alpha", self.alpha, 0, 10)
        check_between("decoding.extra_length", self.extra_length, 0, 1_000_000)
        for name in ("top_k", "no_repeat_ngram", "min_length"):
            check_at_least(f"decoding.{name}", getattr(self, name), 0)
        check_above_zero("decoding.temperature", self.temperature)
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Refuse values that contradict each other."""
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")
        if self.strategy == MBR and self.nbest > self.candidates:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.candidates={self.candidates}")
        if self.utility == "comet" and not self.comet:
            raise ConfigError(
                "decoding.utility=comet needs a model: set decoding.comet to a folder or to a name such as "
                "Unbabel/wmt22-comet-da"
            )
        if self.terms and self.strategy != "beam":
            raise ConfigError("decoding.terms needs a beam: samples cannot have terms")
        if self.well_formed:  # the search among trees knows nothing of other restrictions
            controls = [each for each in fields(self) if each.metadata.keys() & CONTROL.keys()]
            if used := [each.name for each in controls if getattr(self, each.name) != each.default]:
                raise ConfigError(
                    f"decoding.well_formed=true cannot be used with decoding.{used[0]}: remove one of the two"
                )

    @property
    def search(self) -> "DecodingConfig":
        """The settings of the search itself: minimum Bayes risk ranks the candidates that another one finds."""
        if self.strategy != MBR:
            return self
        return replace(self, strategy="sample", beam=self.candidates, nbest=self.candidates)

    @property
    def in_words(self) -> str:
        """The search in a few words."""
        match self.strategy:
            case "mbr":
                return f"minimum Bayes risk ({self.utility}) of {self.candidates} candidates"
            case "sample":
                return "sampled"
            case _:
                return f"beam {self.beam}, length penalty {self.alpha:g}"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""
    bleu_tokenizer: str = "auto"
    """sacreBLEU's tokenizer for BLEU, also in training's validation: auto (zh, ja-mecab and ko-mecab for Chinese,
    Japanese and Korean, 13a for all other languages), or another one, such as char, intl or flores200."""
    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            check_plain_name("evaluation.splits", split)
            if self.splits.count(split) > 1:
                raise ConfigError(f"evaluation.splits names {split} twice: name each once")
        check_choice("evaluation.bleu_tokenizer", self.bleu_tokenizer, BLEU_TOKENIZERS)
