"""Synthetic training text for measurements."""

import numpy as np
import pytest

from nmt.data.batching import Batching
from nmt.data.loader import DataPosition, global_batches
from nmt.data.synthetic import MAX_LENGTH, synthetic_pairs
from nmt.text.special import EOS


def test_synthetic_sentences_are_as_long_as_those_of_wmt14() -> None:
    store = synthetic_pairs(500, 300, pairs=20_000)
    assert len(store) == 20_000
    assert 25 < store.source_lengths.mean() < 29
    assert store.source_lengths.min() >= 1
    assert store.target_lengths.max() <= MAX_LENGTH
    ratios = np.log(store.target_lengths / store.source_lengths)
    assert 0.15 < ratios.std() < 0.25


def test_synthetic_words_are_in_their_vocabularies_and_not_special() -> None:
    store = synthetic_pairs(500, 300, pairs=1000)
    for tokens, words in ((store.source_tokens, 500), (store.target_tokens, 300)):
        assert tokens.min() > EOS
        assert words - 10 < tokens.max() < words


def test_both_sides_have_equal_lengths_without_a_spread() -> None:
    store = synthetic_pairs(500, 500, pairs=1000, ratio_sigma=0.0)
    assert (store.source_lengths == store.target_lengths).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_synthetic_text_depends_on_its_seed_only(seed: int) -> None:
    first, second, other = (synthetic_pairs(500, 500, pairs=100, seed=each) for each in (seed, seed, 3))
    assert (first.target_offsets == second.target_offsets).all()
    assert (first.source_tokens == second.source_tokens).all()
    assert (first.source_offsets != other.source_offsets).any()


def test_synthetic_text_makes_global_batches() -> None:
    store = synthetic_pairs(500, 500, pairs=1000)
    batch = next(global_batches(store, Batching(600, seed=1), device_tokens=0, start=DataPosition(), rank=0, devices=1))
    assert 300 < batch.target_tokens <= 600
