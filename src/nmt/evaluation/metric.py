"""What a metric is: a title, and a function that returns a score with its signature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.config.decoding import EvaluationConfig
from nmt.evaluation.bleu import bleu_tokenizer

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric


@dataclass(frozen=True, slots=True)
class Score:
    """A score, and the signature that says how to compute it again."""

    score: float
    signature: str


@dataclass(frozen=True, slots=True)
class Translated:
    """Translations, with all that a metric may compare them with."""

    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    """The sentences of each reference."""
    target_lang: str
    sources: Sequence[str] = ()
    settings: EvaluationConfig = field(default_factory=EvaluationConfig)
    device: str = "cpu"
    """The type of the device that translated, such as cuda: where a metric with a model computes."""

    @property
    def tokenizer(self) -> str:
        """The name of BLEU's tokenizer."""
        return bleu_tokenizer(self.target_lang, self.settings.bleu_tokenizer)


@dataclass(frozen=True, slots=True)
class Metric:
    """A way to score the translations of a text."""

    title: str
    """Its name in reports, such as chrF."""
    score: Callable[[Translated], Score]
    """Compute the score of translations."""
    sacrebleu: "Callable[[str], SacrebleuMetric] | None" = None
    """Make the sacreBLEU object that significance tests resample, if the metric has one, given BLEU's tokenizer."""


def from_sacrebleu(title: str, make: Callable[[str], "SacrebleuMetric"]) -> Metric:
    """Return one of sacreBLEU's metrics, computed on the raw text, given a function from BLEU's tokenizer to it."""

    def score(text: Translated) -> Score:
        return corpus_score(make(text.tokenizer), text.hypotheses, text.references)

    return Metric(title, score, sacrebleu=make)


def corpus_score(metric: "SacrebleuMetric", hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Return the score that a sacreBLEU metric gives a text, with sacreBLEU's signature."""
    result = metric.corpus_score(hypotheses, references)
    return Score(float(result.score), str(metric.get_signature()))
