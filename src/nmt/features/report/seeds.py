"""Test whether two groups of runs differ, given that both the seeds and the test sentences were drawn at random."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric as SacrebleuMetric

SAMPLES = 1000
"""How often the sentences of a test set are drawn again, with replacement."""
MAX_FREEDOM = 1e6
"""Degrees of freedom at which Student's distribution is the normal one."""


@dataclass(frozen=True, slots=True)
class GroupScores:
    """The scores of the runs of a group by one metric."""

    scores: list[float]
    """One per run, on the whole test set."""
    resampled: NDArray[np.float64]
    """One row per run, with its scores on the sentences of each sample; all runs have the same samples."""

    @property
    def mean(self) -> float:
        """The mean score of the runs."""
        return fmean(self.scores)

    @property
    def squares(self) -> float:
        """The sum of the squared deviations of the runs from their mean."""
        return sum((score - self.mean) ** 2 for score in self.scores)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the runs, or None for a single run."""
        return math.sqrt(self.squares / (len(self.scores) - 1)) if len(self.scores) > 1 else None


def group_scores(
    metric: SacrebleuMetric, translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]], seed: int = 1
) -> GroupScores:
    """Score the runs of a group on a test set and on samples of it.

    Args:
        metric: The metric.
        translations: The translations of each run.
        references: The sentences of each reference.
        seed: The seed of the samples.
    """
    sentences = len(references[0])
    counts = np.random.default_rng(seed).multinomial(sentences, np.full(sentences, 1 / sentences), SAMPLES)
    scores, resampled = [], []
    for texts in translations:
        statistics = np.array(metric._extract_corpus_statistics(texts, references), dtype=np.float64)
        scores.append(float(metric._compute_score_from_stats(statistics.sum(0)).score))
        resampled.append([float(metric._compute_score_from_stats(sums).score) for sums in counts @ statistics])
    return GroupScores(scores, np.array(resampled))


def p_value(first: GroupScores, second: GroupScores) -> float | None:
    """Return how often chance alone makes the means of two groups differ at least this much.

    Chance means two things: other seeds in both groups, and other test sentences. The variance of the difference is the
    sum of two estimates: that of the seeds from the deviations within the groups, pooled, and that of the sentences
    from the bootstrap. Student's t-test then takes account of how few seeds there are, with the degrees of freedom of
    Welch and Satterthwaite. None if no group has two runs, so that the variance of the seeds is unknown.
    """
    runs = len(first.scores), len(second.scores)
    freedom = sum(runs) - 2
    if not freedom:
        return None
    seeds = (first.squares + second.squares) / freedom * (1 / runs[0] + 1 / runs[1])
    sentences = float(np.var(second.resampled.mean(0) - first.resampled.mean(0)))
    difference = abs(second.mean - first.mean)
    if seeds + sentences == 0:
        return float(difference == 0)
    freedom_of_both = min(MAX_FREEDOM, freedom * ((seeds + sentences) / seeds) ** 2) if seeds else MAX_FREEDOM
    return student_tail(difference / math.sqrt(seeds + sentences), freedom_of_both)


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is at least this far from 0, on either side.

    If t = sqrt(freedom) * tan(angle), the density of the angle is proportional to cos(angle)^(freedom - 1), which is
    added up in small steps.
    """
    limit, steps = min(math.pi / 2, 12 / math.sqrt(freedom)), 50_000
    angles = (np.arange(steps) + 0.5) * (limit / steps)
    density = np.cos(angles) ** (freedom - 1)
    return float(density[angles >= math.atan(t / math.sqrt(freedom))].sum() / density.sum())
