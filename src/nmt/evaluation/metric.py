"""The interface of metrics: a title, and a function that returns a score with its signature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric as SacrebleuMetric


@dataclass(frozen=True, slots=True)
class Score:
    """A score, and the signature that says how to compute it again."""

    score: float
    signature: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A way to score the translations of a text."""

    title: str
    """Its name in reports, such as chrF."""
    score: Callable[[Sequence[str], Sequence[str], str], Score]
    """Compute the score from translations, references (one per translation) and the target language."""
    trees: bool = False
    """Whether it scores linearised trees instead of text."""
    sacrebleu: Callable[[], SacrebleuMetric] | None = None
    """Make the sacreBLEU object that significance tests resample, if the metric has one."""


def from_sacrebleu(title: str, make: Callable[[], SacrebleuMetric]) -> Metric:
    """Return one of sacreBLEU's metrics, computed on the raw text for every language."""

    def score(hypotheses: Sequence[str], references: Sequence[str], _target_lang: str) -> Score:
        return corpus_score(make(), hypotheses, references)

    return Metric(title, score, sacrebleu=make)


def corpus_score(metric: SacrebleuMetric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return the score that a sacreBLEU metric gives a text, with sacreBLEU's signature."""
    result = metric.corpus_score(hypotheses, [references])
    return Score(float(result.score), str(metric.get_signature()))
