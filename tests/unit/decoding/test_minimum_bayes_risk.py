"""Minimum Bayes risk: chrF compared with sacreBLEU's, and the choice with a direct computation."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from nmt.decoding.beam import Hypothesis
from nmt.decoding.risk import chrf, rank_by_chrf
from nmt.text.tokenizer import Tokenizer
from tests.unit.decoding.test_torch_engine import LINES, tokenizer, translator
from tests.unit.small_models import make_model

__all__ = ["tokenizer"]
METRIC = CHRF()
WORDS = ["der", "Hund", "hund", "sieht", "die", "Katze", "nicht", "ä😀", "3,5", "a.", "-", "sieht,", "(ja)"]


def texts(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(12))) for _ in range(count)]


@pytest.mark.parametrize("extra", [["", "a", "die die die", "aaaa"], ["  ", "Hund  Hund"]])
def test_chrf_equals_sacrebleus_scores_of_sentences(extra: list[str]) -> None:
    for lines in ([*texts(1, 12), *extra], extra[:1], extra[1:2]):
        expected = [[METRIC.sentence_score(line, [other]).score for other in lines] for line in lines]
        np.testing.assert_allclose(chrf(lines), expected, rtol=1e-9, atol=1e-9)


def test_the_candidate_that_agrees_best_with_all_draws_comes_first() -> None:
    lines = ["der Hund sieht die Katze", "der Hund sieht", "eine Kuh", "der Hund sieht", "die Katze"]
    vocabulary = sorted({character for line in lines for character in line})
    candidates = [
        Hypothesis([vocabulary.index(character) for character in line], score=-1.0, log_probability=-float(number))
        for number, line in enumerate(lines)
    ]

    def decode(tokens: list[int]) -> str:
        return "".join(vocabulary[token] for token in tokens)

    expected = {line: sum(METRIC.sentence_score(line, [other]).score for other in lines) / 5 for line in lines}
    found = rank_by_chrf(candidates, decode, nbest=9)
    assert [decode(each.tokens) for each in found] == sorted(expected, key=lambda line: -expected[line])
    assert [each.score for each in found] == pytest.approx(sorted(expected.values(), reverse=True))


def test_minimum_bayes_risk_chooses_the_sample_that_agrees_best(tokenizer: Tokenizer) -> None:
    model, settings = make_model(tokenizer), {"candidates": 12, "top_p": 0.9}
    sampled = list(translator([model], tokenizer, strategy="sample", nbest=12, top_p=0.9).translate(LINES))
    chosen, again = (
        list(translator([model], tokenizer, strategy="mbr", nbest=2, **settings).translate(LINES)) for _ in range(2)
    )
    assert chosen == again
    for candidates, (best, *_) in zip(sampled, (each.candidates for each in chosen), strict=True):
        lines = [each.text for each in candidates.candidates]
        expected = {text: sum(METRIC.sentence_score(text, [other]).score for other in lines) / 12 for text in lines}
        if len(lines) > 1:  # not an empty line
            assert best.score == pytest.approx(max(expected.values())) == expected[best.text]
