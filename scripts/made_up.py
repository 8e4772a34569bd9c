"""Batches of made-up text, as long as those of WMT14 and in random words; and what a step took of memory."""

import resource
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from nmt.data.batches import IntArray, PairLengths, plan_epoch, split_batch
from nmt.data.loader import DataPosition, GlobalBatch, assemble
from nmt.data.store import PairStore

SENTENCES = 100_000
MEDIAN, SPREAD, LONGEST = 24, 0.5, 256
"""Of the lengths, which are log-normal: 27 word pieces on average."""


class MadeUp:
    """A training text that needs no files."""

    def __init__(
        self, vocabulary: int, batch_tokens: int, device_tokens: int = 0, seed: int = 1, parts: int = 1
    ) -> None:
        random = np.random.default_rng(seed)
        lengths = np.clip(random.lognormal(np.log(MEDIAN), SPREAD, SENTENCES), 1, LONGEST).astype(np.int64)
        self.lengths = PairLengths.with_marks(lengths, lengths)
        self.plan = plan_epoch(self.lengths, batch_tokens, seed, epoch=0)
        self.device_tokens, self.parts = device_tokens, parts
        tokens = random.integers(4, vocabulary, int(lengths.sum()))
        offsets = np.concatenate([[0], lengths.cumsum()])
        self.text: Any = SimpleNamespace(
            source_tokens=tokens, source_offsets=offsets, target_tokens=tokens, target_offsets=offsets
        )

    def step(self, sentences: IntArray) -> GlobalBatch:
        """These sentences as a global batch."""
        micro_batches = split_batch(sentences, self.lengths, self.parts, self.device_tokens // self.parts)
        count = int(self.lengths.target[sentences].sum())
        return GlobalBatch(
            [assemble(cast(PairStore, self.text), each) for each in micro_batches], count, 2 * count, DataPosition()
        )

    def middling(self) -> IntArray:
        """The sentences of a batch of middling length."""
        means = [float(self.lengths.target[self.plan[index]].mean()) for index in range(len(self.plan))]
        return self.plan[int(np.argsort(means)[len(means) // 2])]


def peak_memory(device: torch.device) -> int:
    """Bytes that this process held at most: on the GPU, or altogether."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
