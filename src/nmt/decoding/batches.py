"""Decide which sentences are decoded together, and how many batches are decoded in parallel."""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.compute.workers import Workers, can_fork, concurrent_workers

MAX_SOURCE_TOKENS = 1024
"""Longest source sentence, EOS included; a model with learned positions may allow less."""
MAX_TARGET_TOKENS = 4096
"""Longest translation, prefix or given translation, EOS included."""
MIN_SENTENCE_TOKENS = 16
"""Shorter sentences count as this many tokens, because even they need scores of the whole vocabulary."""
MAX_CPU_HYPOTHESES = 1280
"""The largest number of hypotheses in a batch on a CPU: more need more memory, but no less time per hypothesis."""
MAX_FORK_HYPOTHESES = 80
"""The largest number of hypotheses in a batch that is decoded in a fork: such small steps run mostly in Python, whose
lock lets only one thread run at a time."""
MIN_WORKER_SENTENCES = 4
"""The smallest number of sentences that is worth a worker."""


class DecodingPlan(NamedTuple):
    """Batches of sentence indices, and the workers that decode them."""

    batches: list[list[int]]
    workers: Workers


def serial_plan(lengths: Sequence[int], batch_tokens: int, max_sentences: int = sys.maxsize) -> DecodingPlan:
    """Plan to decode one batch after the other, given the sentences' lengths."""
    return DecodingPlan(list(batches_by_length(lengths, batch_tokens, max_sentences)), Workers())


def cpu_plan(lengths: Sequence[int], batch_tokens: int, hypotheses: int, *, in_c: bool = False) -> DecodingPlan:
    """Plan to decode on a CPU, whose cores decode several batches simultaneously.

    Args:
        lengths: the sentences' lengths in tokens; sentences of length 0 are not decoded.
        batch_tokens: the largest number of source tokens in all batches that are decoded simultaneously.
        hypotheses: hypotheses per sentence.
        in_c: whether a step is one call into C, which does not hold Python's lock.
    """
    sentences = sum(length > 0 for length in lengths)
    workers = concurrent_workers(sentences // MIN_WORKER_SENTENCES)
    max_sentences = min(max(1, MAX_CPU_HYPOTHESES // hypotheses), math.ceil(sentences / workers))
    batches = list(batches_by_length(lengths, max(1, batch_tokens // workers), max_sentences))
    if workers == 1:
        return DecodingPlan(batches, Workers())
    if not in_c and can_fork() and all(len(batch) * hypotheses <= MAX_FORK_HYPOTHESES for batch in batches):
        return DecodingPlan(batches, Workers("forks", min(torch.get_num_threads(), len(batches))))
    return DecodingPlan(batches, Workers("threads", workers))


def same_plan(lengths: Sequence[int], batch_tokens: int, hypotheses: int) -> DecodingPlan:
    """Plan to decode on a CPU so that the result does not depend, in any digit, on the number of cores.

    The batches are always the same, and each of them is decoded by one core.
    """
    batches = list(batches_by_length(lengths, batch_tokens, max(1, MAX_CPU_HYPOTHESES // hypotheses)))
    cores = torch.get_num_threads()
    if cores == 1:
        return DecodingPlan(batches, Workers())
    return DecodingPlan(batches, Workers("forks" if can_fork() else "threads", cores))


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
