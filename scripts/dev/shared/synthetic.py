"""Synthetic training text: random words in sentences about as long as those of WMT14, without files."""

import numpy as np
import numpy.typing as npt

from nmt.data.batches import Batching, IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble
from nmt.data.shapes import Shapes
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
    source_lengths = _whole(random.lognormal(np.log(median_length), LENGTH_SIGMA, pairs), max_length)
    source_tokens = random.integers(EOS + 1, source_words, int(source_lengths.sum()), dtype=np.uint32)
    target_lengths = _whole(source_lengths * random.lognormal(0, ratio_sigma, pairs), max_length)
    target_tokens = random.integers(EOS + 1, target_words, int(target_lengths.sum()), dtype=np.uint32)
    return in_memory((source_tokens, source_lengths), (target_tokens, target_lengths))


def _whole(lengths: npt.NDArray[np.float64], longest: int) -> npt.NDArray[np.int64]:
    return np.clip(lengths, 1, longest).astype(np.int64)


class SyntheticText:
    """A training text in memory, whose pairs have equal lengths on both sides."""

    def __init__(
        self, vocabulary: int, batch_tokens: int, device_tokens: int = 0, seed: int = 1, threads: int = 1
    ) -> None:
        self.store = synthetic_pairs(vocabulary, vocabulary, seed=seed, ratio_sigma=0.0)
        self.lengths = PairLengths.with_marks(self.store.source_lengths, self.store.target_lengths)
        self.plan = plan_epoch(self.lengths, Batching(batch_tokens, seed), epoch=0)
        self.device_tokens, self.threads = device_tokens, threads

    def step(self, sentences: IntArray, shapes: Shapes = CPU_SHAPES) -> GlobalBatch:
        """Return these sentences as a global batch, with streams of these shapes."""
        micro_batches = split_batch(sentences, self.lengths, self.threads, self.device_tokens // self.threads)
        count = int(self.lengths.target[sentences].sum())
        assembled = [assemble(self.store, each, shapes=shapes) for each in micro_batches]
        return GlobalBatch(assembled, count, 2 * count, DataPosition())

    def median_batch(self) -> IntArray:
        """Return the sentences of the batch whose mean length is the median."""
        means = [float(self.lengths.target[self.plan[index]].mean()) for index in range(len(self.plan))]
        return self.plan[int(np.argsort(means)[len(means) // 2])]
