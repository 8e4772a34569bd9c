"""The settings of translation and evaluation."""

from dataclasses import dataclass, field, replace

from nmt.config.checks import check_at_least, check_between, check_choice, check_fraction, check_plain_name
from nmt.errors import ConfigError

ALIGNMENT_STATES = ("input", "output")
"""The decoder step that reads a word, and the one that predicts it."""

BLEU_TOKENIZERS = (
    "auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none", "spm", "flores101", "flores200", "spBLEU-1K",
)  # fmt: skip
"""auto, and the names of sacreBLEU's tokenizers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """Beam search, as in section 6.1 of the paper, sampling, or minimum Bayes risk."""

    strategy: str = "beam"
    """beam (search), sample (draw `nbest` random translations, which depend on `seed` and the sentence), or mbr
    (minimum Bayes risk: of several candidates the one that agrees best with all of them)."""
    beam: int = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    noise: float = 0.0
    """Beam search: factor of random (Gumbel) noise that is added to the score of each word piece; 0 for none. `seed`
    and the sentence fix the noise."""
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
    epsilon: float = 0.0
    """Sample only word pieces of at least this probability; 0 for all."""
    candidates: int = 64
    """Candidates per sentence for minimum Bayes risk."""
    candidates_by: str = "sample"
    """How candidates are found: sample (narrowed by epsilon, top_k, top_p and temperature), or beam."""
    utility: str = "chrf"
    """Agreement of two candidates for minimum Bayes risk: chrf, bleu or comet."""
    comet: str = ""
    """Model of COMET for `utility=comet`: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging
    Face. It needs the package unbabel-comet."""
    no_repeat_ngram: int = 0
    """No sequence of this many word pieces stands twice in a translation; 0 allows repetitions."""
    min_length: int = 0
    """Least word pieces per translation."""
    suppress_unknown: bool = False
    """Write no characters that the vocabulary lacks."""
    groups: int = 1
    """Groups into which the beam is divided; each avoids the word pieces that the groups before it have just chosen."""
    diversity: float = 0.5
    """How much: the log-probability that a word piece loses for each hypothesis that has just chosen it."""
    terms: str = ""
    """File with a term, a tab and its translation on each line. If a term stands in a source line, its translation
    must stand in the translation of the line."""
    alignments: bool = False
    """Align the words of each translation with those of its source, which takes one more pass over the translations."""
    alignment_layer: int = 0
    """Decoder layer whose cross-attention aligns, from 1; 0 is the head that training.guided_weight has trained, or the
    mean of the last two layers if there is none."""
    alignment_head: int = 0
    """Head of alignment_layer that aligns, from 1; 0 is the mean of all."""
    alignment_state: str = "output"
    """The attention of a word is that of the decoder step that reads it (input) or that predicts it (output)."""
    ensemble: list[str] = field(default_factory=list)
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""

    @property
    def search(self) -> "DecodingConfig":
        """The settings of the search itself: for minimum Bayes risk, of the search for candidates."""
        if self.strategy != "mbr":
            return self
        return replace(self, strategy=self.candidates_by, beam=self.candidates, nbest=self.candidates)

    @property
    def copies(self) -> int:
        """How often each sentence stands in a batch: once per sample, or once per group of the beam."""
        return self.search.nbest if self.search.strategy == "sample" else self.groups

    @property
    def torch_only(self) -> list[str]:
        """The names of the settings in use that only engine=torch offers."""
        names = ("ensemble", "well_formed", "terms", "alignments", "noise", "epsilon")
        return [name for name in names if getattr(self, name)] + ["groups"] * (self.groups > 1)

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("decoding.strategy", self.strategy, ("beam", "sample", "mbr"))
        check_choice("decoding.candidates_by", self.candidates_by, ("sample", "beam"))
        check_choice("decoding.utility", self.utility, ("chrf", "bleu", "comet"))
        if self.utility == "comet" and not self.comet:
            raise ConfigError(
                "decoding.utility=comet needs a model: set decoding.comet to a folder or to a name such as "
                "Unbabel/wmt22-comet-da"
            )
        for name in ("beam", "nbest", "candidates"):
            check_between(f"decoding.{name}", getattr(self, name), 1, 10_000)
        check_at_least("decoding.batch_tokens", self.batch_tokens, 1)
        check_between("decoding.alpha", self.alpha, 0, 10)
        check_between("decoding.noise", self.noise, 0, 10)
        check_between("decoding.extra_length", self.extra_length, 0, 1_000_000)
        check_choice("decoding.alignment_state", self.alignment_state, ALIGNMENT_STATES)
        for name in ("top_k", "no_repeat_ngram", "min_length", "diversity", "alignment_layer", "alignment_head"):
            check_at_least(f"decoding.{name}", getattr(self, name), 0)
        if self.alignment_head and not self.alignment_layer:
            raise ConfigError(f"decoding.alignment_head={self.alignment_head} needs decoding.alignment_layer")
        if not self.temperature > 0:
            raise ConfigError(f"decoding.temperature={self.temperature} must be above 0")
        if self.noise and self.strategy != "beam":
            raise ConfigError("decoding.noise needs decoding.strategy=beam; for samples, set decoding.temperature")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        check_fraction("decoding.epsilon", self.epsilon)
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")
        if self.strategy == "mbr" and self.nbest > self.candidates:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.candidates={self.candidates}")
        self._check_controls()

    def _check_controls(self) -> None:
        """Refuse combinations of strategies and controls that no search offers."""
        check_at_least("decoding.groups", self.groups, 1)
        width = "candidates" if self.strategy == "mbr" else "beam"
        if getattr(self, width) % self.groups:
            raise ConfigError(f"decoding.groups={self.groups} does not divide decoding.{width}={getattr(self, width)}")
        if self.search.strategy == "sample" and (self.groups > 1 or self.terms):
            raise ConfigError("decoding.groups and decoding.terms need a beam: samples cannot have them")
        controls = (self.no_repeat_ngram, self.min_length, self.suppress_unknown, self.groups > 1, self.terms)
        if self.well_formed and any(controls):
            raise ConfigError(
                "decoding.well_formed=true cannot be used with no_repeat_ngram, min_length, suppress_unknown, groups "
                "or terms: remove them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""
    comet: str = ""
    """Model of COMET: a folder, or a name such as Unbabel/wmt22-comet-da in the cache of Hugging Face; empty for none.
    It needs the package unbabel-comet."""
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
