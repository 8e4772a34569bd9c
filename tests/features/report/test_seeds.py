"""The test over seeds and sentences together: its parts against independent values, and its rate of false positives.

`python -m tests.features.report.test_seeds` prints the table of docs/results.md.
"""

import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.features.report.seeds import GroupScores, group_scores, p_value, student_tail


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [
        (0.0, 3, 1.0),
        (1.0, 1, 0.5),  # Cauchy
        (12.706, 1, 0.05),
        (4.303, 2, 0.05),
        (2.776, 4, 0.05),
        (4.604, 4, 0.01),
        (2.228, 10, 0.05),
        (1.960, 1e6, 0.05),
        (0.5, 1e6, math.erfc(0.5 / math.sqrt(2))),
    ],
)
def test_students_distribution_has_the_values_of_its_tables(t: float, freedom: float, expected: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("metric", [BLEU(), CHRF()])
def test_scores_of_samples_are_those_of_the_sampled_sentences(metric: BLEU | CHRF) -> None:
    references = ["the old king sees a tree", "a small dog runs home", "nobody saw the king", "they saw a green tree"]
    translations = [["the king sees a tree", "a dog runs home", "nobody saw a king", "they see the green tree"]]
    found = group_scores(metric, translations, [references], seed=3)
    assert found.scores == [pytest.approx(metric.corpus_score(translations[0], [references]).score)]
    counts = np.random.default_rng(3).multinomial(4, np.full(4, 0.25), 1000)[7]
    lines = [(text, line) for text, line, count in zip(translations[0], references, counts, strict=True)
             for _ in range(count)]  # fmt: skip
    expected = metric.corpus_score([text for text, _ in lines], [[line for _, line in lines]]).score
    assert found.resampled[0, 7] == pytest.approx(expected)


def group(scores: list[float]) -> GroupScores:
    """Return scores on a test set whose sentences are all equal, so that only the seeds matter."""
    return GroupScores(scores, np.repeat(np.array(scores)[:, None], 10, axis=1))


def test_without_variance_of_the_sentences_it_is_students_test() -> None:
    # t = 2 / sqrt(1 * (1/3 + 1/3)), four degrees of freedom; the value is that of scipy.stats.ttest_ind
    assert p_value(group([1.0, 2.0, 3.0]), group([3.0, 4.0, 5.0])) == pytest.approx(0.07048, abs=1e-4)


def test_one_run_per_group_has_no_p_value() -> None:
    assert p_value(group([1.0]), group([3.0])) is None
    assert p_value(group([1.0, 1.0]), group([1.0])) == 1.0
    assert p_value(group([1.0, 1.0]), group([3.0])) == 0.0


def simulated(random: np.random.Generator, runs: tuple[int, int], gain: float) -> tuple[GroupScores, GroupScores]:
    """Draw two groups whose means differ by `gain`: sentences, systems, seeds and their interactions all vary."""
    sentences, samples = 100, 100
    counts = random.multinomial(sentences, np.full(sentences, 1 / sentences), samples) / sentences
    difficulty, groups = random.normal(0, 3, sentences), []
    for size, mean in zip(runs, (30.0, 30.0 + gain), strict=True):
        system = difficulty + random.normal(0, 2, sentences)
        scores = mean + system + random.normal(0, 0.5, (size, 1)) + random.normal(0, 2, (size, sentences))
        groups.append(GroupScores([float(each) for each in scores.mean(1)], scores @ counts.T))
    return groups[0], groups[1]


def rate(runs: tuple[int, int], gain: float = 0.0, repetitions: int = 300) -> float:
    """Return how often groups are called different."""
    random = np.random.default_rng(5)
    found = [p_value(*simulated(random, runs, gain)) for _ in range(repetitions)]
    return float(np.mean([p is not None and p < 0.05 for p in found]))


@pytest.mark.parametrize("runs", [(2, 2), (3, 3), (1, 4), (5, 3)])
def test_equal_groups_are_called_different_in_about_a_twentieth_of_cases(runs: tuple[int, int]) -> None:
    assert 0.01 < rate(runs) < 0.1


def test_a_real_difference_is_found_more_often_with_more_seeds() -> None:
    few, many = (rate((runs, runs), gain=1.6, repetitions=200) for runs in (2, 6))
    assert few < many
    assert many > 0.9


def false_positives(runs: tuple[int, int], repetitions: int = 2000) -> tuple[float, float]:
    """Return how often equal groups are called different, and how often the bootstrap calls two single runs so."""
    random, by_groups, by_sentences = np.random.default_rng(7), 0, 0
    for _ in range(repetitions):
        first, second = simulated(random, runs, gain=0.0)
        p = p_value(first, second)
        by_groups += p is not None and p < 0.05
        gaps = second.resampled[0] - first.resampled[0]
        by_sentences += np.mean(abs(gaps - gaps.mean()) >= abs(second.scores[0] - first.scores[0])) < 0.05
    return by_groups / repetitions, by_sentences / repetitions


if __name__ == "__main__":
    print("| runs per group | test of groups | bootstrap of the first runs |\n|---|---|---|")
    for sizes in ((2, 2), (3, 3), (1, 4), (5, 3), (5, 5)):
        print("| {} and {} | {:.1%} | {:.1%} |".format(*sizes, *false_positives(sizes)))
