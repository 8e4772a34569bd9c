"""The settings of translation and evaluation."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from nmt.config.checks import AboveZero, Count, Group, Positive, check_plain_name, one_of, within
from nmt.errors import ConfigError

BLEU_TOKENIZERS = (
    "auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none", "spm", "flores101", "flores200", "spBLEU-1K",
)  # fmt: skip
"""auto, and the names of sacreBLEU's tokenizers."""
MBR = "mbr"
"""The value of `decoding.strategy` for minimum Bayes risk."""
ONLY_TORCH = ("strategy", "ensemble", "alignments", "terms")
"""Settings that only engine=torch offers, if they have other values than their defaults."""
NOT_OF_THE_SEARCH = ("batch_tokens", "ensemble", "alignments")
"""Settings that do not change what the search finds with a model, or that name the model."""
Width = Annotated[int, within(at_least=1, at_most=10_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig(Group):
    """The search for translations, as in section 6.1 of the paper."""

    strategy: Annotated[str, one_of("beam", "sample", MBR)] = "beam"
    """How translations are found: by beam search, as a sample, or by the minimum Bayes risk of candidates (mbr)."""
    beam: Width = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: Annotated[float, within(at_least=0, at_most=10)] = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: Annotated[int, within(at_least=0, at_most=1_000_000)] = 50
    """Most word pieces by which a translation may be longer than its source."""
    nbest: Width = 1
    """Translations to write per sentence."""
    temperature: AboveZero = 1.0
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: Count = 0
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: Annotated[float, within(above=0, at_most=1)] = 1.0
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    batch_tokens: Positive = 4096
    """Source tokens per batch."""
    ensemble: list[str] = field(default_factory=list)
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""
    alignments: bool = False
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""
    terms: str = ""
    """File with a term, a tab and its translation on each line. If a term stands in a source line, its translation
    must stand in the translation of the line."""
    no_repeat_ngram: Count = 0
    """No sequence of this many word pieces stands twice in a translation; 0 allows repetitions."""
    candidates: Width = 64
    """Candidates per sentence for minimum Bayes risk: samples, narrowed by top_k, top_p and temperature. The one that
    agrees best with the others by chrF is chosen."""

    def _check(self) -> None:
        if self.strategy == "beam" and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            raise ConfigError(
                "decoding.temperature, top_k and top_p are for samples: set decoding.strategy=sample or mbr"
            )
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")
        if self.strategy == MBR and self.nbest > self.candidates:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.candidates={self.candidates}")
        if self.terms and self.strategy != "beam":
            raise ConfigError("decoding.terms needs a beam: samples cannot have terms")

    @property
    def search(self) -> "DecodingConfig":
        """The settings of the search itself: minimum Bayes risk ranks the candidates that another one finds."""
        if self.strategy != MBR:
            return self
        return replace(self, strategy="sample", beam=self.candidates, nbest=self.candidates)

    @property
    def plain_beam(self) -> "DecodingConfig":
        """The beam of these settings without their other wishes, which every export can search with."""
        return DecodingConfig(
            beam=self.beam, alpha=self.alpha, extra_length=self.extra_length, batch_tokens=self.batch_tokens
        )

    @property
    def in_words(self) -> str:
        """The search in a few words."""
        match self.strategy:
            case "mbr":
                return f"minimum Bayes risk (chrF) of {self.candidates} candidates"
            case "sample":
                return "sampled"
            case _:
                return f"beam {self.beam}, length penalty {self.alpha:g}"

    @property
    def naming_no_file(self) -> "DecodingConfig":
        """The same settings without those that name files: a model from a stranger must not choose what is read."""
        return replace(self, terms="")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig(Group):
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""
    bleu_tokenizer: Annotated[str, one_of(*BLEU_TOKENIZERS)] = "auto"
    """sacreBLEU's tokenizer for BLEU, also in training's validation: auto (zh, ja-mecab and ko-mecab for Chinese,
    Japanese and Korean, 13a for all other languages), or another one, such as char, intl or flores200."""
    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""

    def _check(self) -> None:
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            check_plain_name("evaluation.splits", split)
