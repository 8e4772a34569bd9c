"""Word pieces are put together to words, which have their probabilities and attention."""

import math

import numpy as np
import pytest

from nmt.decoding.attention import word_attention
from nmt.decoding.translation import ScoredToken, word_probabilities
from nmt.text.words import Word


def test_probability_of_a_word_is_the_product_of_those_of_its_pieces() -> None:
    tokens = [ScoredToken("▁Ein", math.log(0.5)), ScoredToken("▁H", math.log(0.5)), ScoredToken("und", math.log(0.8))]
    found = word_probabilities([Word("Ein", [0]), Word("Hund", [1, 2])], tokens)
    assert [word.text for word in found] == ["Ein", "Hund"]
    assert [word.probability for word in found] == pytest.approx([0.5, 0.4])


def test_attention_of_a_word_is_that_of_the_steps_that_predict_it() -> None:
    source, target = [Word("a", [0]), Word("dog", [1, 2])], [Word("Ein", [0]), Word("Hund", [1, 2])]
    steps = np.array([[0.8, 0.1, 0.1, 0.0], [0.0, 0.4, 0.4, 0.2], [0.2, 0.3, 0.1, 0.4], [0.25, 0.25, 0.25, 0.25]])
    cross = np.stack([steps, steps])[:, None].astype(np.float32)  # two layers with one head
    found = word_attention(cross, source, target)
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.1 / 0.7, 0.6 / 0.7]], rtol=1e-5)
