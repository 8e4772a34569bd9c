"""Minimum Bayes risk: utilities compared with sacreBLEU's, and the choice with a direct computation."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.decoding.beam import Hypothesis
from nmt.decoding.risk import Utility, bleu, chrf, rank_by_utility

METRICS = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
UTILITIES: dict[str, Utility] = {"chrf": chrf, "bleu": bleu}
WORDS = ["der", "Hund", "hund", "sieht", "die", "Katze", "nicht", "ä😀", "3,5", "a.", "-", "sieht,", "(ja)"]


def texts(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(12))) for _ in range(count)]


@pytest.mark.parametrize("name", UTILITIES)
def test_utilities_equal_sacrebleus_scores_of_sentences(name: str) -> None:
    metric = METRICS[name]
    for seed, extra in enumerate([["", "a", "die die die", "aaaa"], [], ["  ", "Hund  Hund"]]):
        lines = [*texts(seed, 12), *extra]
        expected = [[metric.sentence_score(line, [other]).score for other in lines] for line in lines]
        np.testing.assert_allclose(UTILITIES[name](lines, ""), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("lines", [[""], ["", ""], ["Hund"]])
def test_few_and_empty_translations_have_a_utility(name: str, lines: list[str]) -> None:
    assert UTILITIES[name](lines, "").shape == (len(lines), len(lines))


def test_the_candidate_that_agrees_best_with_all_draws_comes_first() -> None:
    lines = ["der Hund sieht die Katze", "der Hund sieht", "eine Kuh", "der Hund sieht", "die Katze"]
    vocabulary = sorted({character for line in lines for character in line})
    candidates = [
        Hypothesis([vocabulary.index(character) for character in line], score=-1.0, log_probability=-float(number))
        for number, line in enumerate(lines)
    ]

    def decode(tokens: list[int]) -> str:
        return "".join(vocabulary[token] for token in tokens)

    metric = METRICS["chrf"]
    expected = {line: sum(metric.sentence_score(line, [other]).score for other in lines) / 5 for line in lines}
    found = rank_by_utility(candidates, decode, lambda texts: chrf(texts, "a source"), nbest=3)
    assert [decode(each.tokens) for each in found] == sorted(expected, key=lambda line: -expected[line])[:3]
    assert [each.score for each in found] == pytest.approx(sorted(expected.values(), reverse=True)[:3])
    found = rank_by_utility(candidates, decode, lambda texts: chrf(texts, "a source"), nbest=9)
    assert len(found) == 4  # the second line was drawn twice
