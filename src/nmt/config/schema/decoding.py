"""The settings of translation and evaluation."""

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from nmt.config.checks import ONLY_TORCH, check_at_least, check_between, check_choice, check_plain_name
from nmt.config.choices import CHOICES
from nmt.errors import ConfigError
from nmt.feature import features, imported

ALIGNMENT_STATES = ("input", "output")
"""The decoder step that reads a word, and the one that predicts it."""

BLEU_TOKENIZERS = (
    "auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none", "spm", "flores101", "flores200", "spBLEU-1K",
)  # fmt: skip
"""auto, and the names of sacreBLEU's tokenizers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """The search for translations, as in section 6.1 of the paper."""

    strategy: str = "beam"
    """How translations are found."""
    beam: int = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Most word pieces by which a translation may be longer than its source."""
    nbest: int = 1
    """Translations to write per sentence."""
    batch_tokens: int = 4096
    """Source tokens per batch."""
    alignments: bool = field(default=False, metadata=ONLY_TORCH)
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""
    alignment_layer: int = 0
    """Decoder layer whose cross-attention aligns, from 1; 0 is the head that training.guided_weight has trained, or the
    mean of the last two layers if there is none."""
    alignment_head: int = 0
    """Head of alignment_layer that aligns, from 1; 0 is the mean of all."""
    alignment_state: str = "output"
    """The attention of a word is that of the decoder step that reads it (input) or that predicts it (output)."""
    ensemble: list[str] = field(default_factory=list, metadata=ONLY_TORCH)
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""

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
        return next(filter(None, found), f"beam {self.beam}, length penalty {self.alpha:g}")

    @property
    def for_any_engine(self) -> "DecodingConfig":
        """The same settings without those that only engine=torch offers."""
        usual = type(self)()
        return replace(self, **{each.name: getattr(usual, each.name) for each in self._only_torch})

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
        check_choice("decoding.alignment_state", self.alignment_state, ALIGNMENT_STATES)
        for name in ("alignment_layer", "alignment_head"):
            check_at_least(f"decoding.{name}", getattr(self, name), 0)
        if self.alignment_head and not self.alignment_layer:
            raise ConfigError(f"decoding.alignment_head={self.alignment_head} needs decoding.alignment_layer")
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
        check_choice("evaluation.bleu_tokenizer", self.bleu_tokenizer, BLEU_TOKENIZERS)
