"""Global batches of synthetic text whose sides have equal lengths."""

import numpy as np

from nmt.data.batches import IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.batching import Batching
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble
from nmt.data.shapes import Shapes
from nmt.data.synthetic import synthetic_pairs


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
