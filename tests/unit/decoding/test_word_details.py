"""Word pieces are put together to words, with their probabilities and attention."""

import math

import numpy as np
import pytest

from nmt.decoding.attention import END, START, Attention
from nmt.decoding.translation import ScoredToken
from nmt.decoding.word_details import spell, word_attention, words_of


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["▁Ein", "▁H", "und", "."], "Ein Hund.", ["Ein", "Hund."]),
        (["▁", "▁Ein", "▁", "Hund", "▁"], "Ein Hund", ["Ein", "Hund"]),
        (["Ein", "▁<unk>"], "Ein 😀", ["Ein", "😀"]),
        ([], "", []),
    ],
)
def test_words_are_spelled_as_in_the_text(pieces: list[str], text: str, expected: list[str]) -> None:
    assert spell(pieces, text) == expected


def test_probability_of_a_word_is_the_product_of_those_of_its_pieces() -> None:
    tokens = [ScoredToken("▁Ein", math.log(0.5)), ScoredToken("▁H", math.log(0.5)), ScoredToken("und", math.log(0.8))]
    found = words_of(tokens, "Ein Hund")
    assert [word.text for word in found] == ["Ein", "Hund"]
    assert [word.probability for word in found] == pytest.approx([0.5, 0.4])


def test_attention_of_a_word_is_that_of_the_steps_that_predict_it() -> None:
    source, target = ["▁a", "▁do", "g", END], [START, "▁Ein", "▁H", "und"]
    steps = np.array([[0.8, 0.1, 0.1, 0.0], [0.0, 0.4, 0.4, 0.2], [0.2, 0.3, 0.1, 0.4], [0.25, 0.25, 0.25, 0.25]])
    cross = np.stack([steps, steps])[:, None].astype(np.float32)  # two layers with one head
    found = word_attention(Attention(source, target, cross, cross, cross))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.1 / 0.7, 0.6 / 0.7]], rtol=1e-5)
