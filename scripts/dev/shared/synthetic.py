"""Global batches of synthetic text, and the peak memory of a process."""

import resource
from collections.abc import Iterator

import numpy as np
import torch

from nmt.compute import distributed
from nmt.data.batches import IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble, global_batches
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore
from nmt.data.synthetic import synthetic_pairs
from nmt.training.trainer import Trainer


class SyntheticText:
    """A training text in memory, whose pairs have equal lengths on both sides."""

    def __init__(
        self, vocabulary: int, batch_tokens: int, device_tokens: int = 0, seed: int = 1, threads: int = 1
    ) -> None:
        self.store = synthetic_pairs(vocabulary, vocabulary, seed=seed, ratio_sigma=0.0)
        self.lengths = PairLengths.with_marks(self.store.source_lengths, self.store.target_lengths)
        self.plan = plan_epoch(self.lengths, batch_tokens, seed, epoch=0)
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


def synthetic_batches(trainer: Trainer, pairs: PairStore) -> Iterator[GlobalBatch]:
    """Yield global batches of a text for this process of those that train together."""
    return global_batches(
        pairs,
        batch_tokens=trainer.config.batch_tokens,
        device_tokens=trainer.config.device_tokens,
        seed=1,
        start=DataPosition(),
        rank=distributed.rank(),
        devices=distributed.world_size(),
        threads=trainer.concurrency,
        shapes=trainer.shapes(trainer.config.device_tokens),
    )


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: on the GPU, or of the whole process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
