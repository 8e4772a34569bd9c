"""Decide which sentences are decoded together, and how many batches are decoded in parallel."""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.compute.workers import concurrent_workers

MAX_SOURCE_TOKENS = 1024
"""Longest source sentence, EOS included; a model with learned positions may allow less."""
MAX_TARGET_TOKENS = 4096
"""Longest translation, prefix or given translation, EOS included."""
MIN_SENTENCE_TOKENS = 16
"""Shorter sentences count as this many tokens, because even they need scores of the whole vocabulary."""
MAX_CPU_HYPOTHESES = 1280
"""The largest number of hypotheses in a batch on a CPU: more need more memory, but no less time per hypothesis."""
MIN_WORKER_SENTENCES = 4
"""The smallest number of sentences that is worth a worker."""


class DecodingPlan(NamedTuple):
    """Batches of sentence indices, and how many of them are decoded at the same time."""

    batches: list[list[int]]
    workers: int = 1


def cpu_plan(lengths: Sequence[int], batch_tokens: int, hypotheses: int, *, same: bool = False) -> DecodingPlan:
    """Plan to decode on a CPU, whose cores decode several batches simultaneously.

    Args:
        lengths: the sentences' lengths in tokens; sentences of length 0 are not decoded.
        batch_tokens: the largest number of source tokens in all batches that are decoded simultaneously.
        hypotheses: hypotheses per sentence.
        same: whether the result must not depend, in any digit, on the number of cores: the batches are then always the
            same, and each of them is decoded by one core.
    """
    max_sentences = max(1, MAX_CPU_HYPOTHESES // hypotheses)
    if same:
        return DecodingPlan(list(batches_by_length(lengths, batch_tokens, max_sentences)), torch.get_num_threads())
    sentences = sum(length > 0 for length in lengths)
    workers = concurrent_workers(sentences // MIN_WORKER_SENTENCES)
    max_sentences = min(max_sentences, math.ceil(sentences / workers))
    return DecodingPlan(list(batches_by_length(lengths, max(1, batch_tokens // workers), max_sentences)), workers)


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, max_sentences: int = sys.maxsize
) -> Iterator[list[int]]:
    """Yield batches of indices of sentences, the longest sentences first, without those of length 0.

    A batch holds at most `batch_tokens` tokens, or a single sentence, and at most `max_sentences` sentences.
    """
    batch: list[int] = []
    batch_size = 0
    decoded = (index for index, length in enumerate(lengths) if length)
    for index in sorted(decoded, key=lambda index: -lengths[index]):
        size = max(lengths[index], MIN_SENTENCE_TOKENS)
        if batch and (batch_size + size > batch_tokens or len(batch) == max_sentences):
            yield batch
            batch, batch_size = [], 0
        batch.append(index)
        batch_size += size
    if batch:
        yield batch
