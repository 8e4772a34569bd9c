"""Synthetic training text: random words in sentences about as long as those of WMT14, without files."""

import numpy as np

from nmt.data.store import PairStore, in_memory
from nmt.text.special import EOS

PAIRS = 100_000
MEDIAN_LENGTH, LENGTH_SIGMA, MAX_LENGTH = 24, 0.5, 256
"""Parameters of the log-normal lengths of source sentences, whose mean is 27 word pieces."""
RATIO_SIGMA = 0.2
"""Standard deviation of the logarithm of a translation's length divided by that of its source."""


def synthetic_pairs(
    source_words: int,
    target_words: int,
    *,
    pairs: int = PAIRS,
    seed: int = 1,
    ratio_sigma: float = RATIO_SIGMA,
    median_length: int = MEDIAN_LENGTH,
    max_length: int = MAX_LENGTH,
) -> PairStore:
    """Return a training text of random words in memory; with `ratio_sigma=0` both sides have equal lengths."""
    random = np.random.default_rng(seed)
    drawn = random.lognormal(np.log(median_length), LENGTH_SIGMA, pairs)
    source_lengths = np.clip(drawn, 1, max_length).astype(np.int64)
    source_tokens = random.integers(EOS + 1, source_words, int(source_lengths.sum()), dtype=np.uint32)
    drawn = source_lengths * random.lognormal(0, ratio_sigma, pairs)
    target_lengths = np.clip(drawn, 1, max_length).astype(np.int64)
    target_tokens = random.integers(EOS + 1, target_words, int(target_lengths.sum()), dtype=np.uint32)
    return in_memory((source_tokens, source_lengths), (target_tokens, target_lengths))
