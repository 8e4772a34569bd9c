"""Provide synthetic training text, with sentences about as long as those of WMT14, and the peak memory of a process."""

import resource
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from nmt.data.batches import IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.loader import CPU_SHAPES, DataPosition, GlobalBatch, assemble
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore

SENTENCES = 100_000
MEDIAN_LENGTH, LENGTH_SIGMA, MAX_LENGTH = 24, 0.5, 256
"""Parameters of the log-normal lengths, whose mean is 27 word pieces."""


class SyntheticText:
    """A training text in memory, without files."""

    def __init__(
        self, vocabulary: int, batch_tokens: int, device_tokens: int = 0, seed: int = 1, threads: int = 1
    ) -> None:
        random = np.random.default_rng(seed)
        lengths = np.clip(random.lognormal(np.log(MEDIAN_LENGTH), LENGTH_SIGMA, SENTENCES), 1, MAX_LENGTH).astype(
            np.int64
        )
        self.lengths = PairLengths.with_marks(lengths, lengths)
        self.plan = plan_epoch(self.lengths, batch_tokens, seed, epoch=0)
        self.device_tokens, self.threads = device_tokens, threads
        tokens = random.integers(4, vocabulary, int(lengths.sum()))
        offsets = np.concatenate([[0], lengths.cumsum()])
        self.text: Any = SimpleNamespace(
            source_tokens=tokens, source_offsets=offsets, target_tokens=tokens, target_offsets=offsets
        )

    def step(self, sentences: IntArray, shapes: Shapes = CPU_SHAPES) -> GlobalBatch:
        """Return these sentences as a global batch, with streams of these shapes."""
        micro_batches = split_batch(sentences, self.lengths, self.threads, self.device_tokens // self.threads)
        count = int(self.lengths.target[sentences].sum())
        text = cast(PairStore, self.text)
        assembled = [assemble(text, each, shapes=shapes) for each in micro_batches]
        return GlobalBatch(assembled, count, 2 * count, DataPosition())

    def median_batch(self) -> IntArray:
        """Return the sentences of the batch whose mean length is the median."""
        means = [float(self.lengths.target[self.plan[index]].mean()) for index in range(len(self.plan))]
        return self.plan[int(np.argsort(means)[len(means) // 2])]


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: on the GPU, or of the whole process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
