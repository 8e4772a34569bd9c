"""The micro-batches that may need the most memory, which training tries before its first step."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nmt.data.batches import Batching, IntArray, PairLengths, plan_epoch
from nmt.data.loader import CPU_SHAPES, MicroBatch, assemble, split_for_devices
from nmt.data.shapes import Shapes
from nmt.data.store import Pairs

CANDIDATE_BATCHES = 64
"""How many of the largest global batches may have the largest micro-batch: it need not be in the very largest."""


def largest_micro_batches(
    store: Pairs,
    batching: Batching,
    *,
    device_tokens: int,
    devices: int,
    threads: int = 1,
    shapes: Shapes = CPU_SHAPES,
) -> list[MicroBatch]:
    """Return the micro-batches that may need the most memory: by tokens, tokens times longest sentence, and sentences.

    The backward pass of flash attention needs memory for each sentence, however short. The arguments are those of
    `global_batches`.
    """
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    plan = plan_epoch(lengths, batching, epoch=0)
    starts = np.sort(plan.bounds[:, 0])
    batches = np.split(plan.order, starts[1:])
    pair_tokens = lengths.source.astype(np.int64) + lengths.target
    longer = np.maximum(lengths.source, lengths.target).astype(np.int64)
    batch_sizes = np.add.reduceat(pair_tokens[plan.order], starts)
    longest = np.maximum.reduceat(longer[plan.order], starts)
    batch_sentences = np.diff(np.append(starts, len(plan.order)))

    def largest(batch_weights: npt.NDArray[np.int64], weight: Callable[[IntArray], int]) -> MicroBatch:
        micro_batches = (
            micro_batch
            for index in np.argsort(batch_weights)[-CANDIDATE_BATCHES:]
            for micro_batch in split_for_devices(batches[index], lengths, device_tokens, devices, threads)
        )
        return assemble(store, max(micro_batches, key=weight), shapes=shapes)

    return [
        largest(batch_sizes, lambda pairs: int(pair_tokens[pairs].sum())),
        largest(batch_sizes * longest, lambda pairs: int(pair_tokens[pairs].sum() * longer[pairs].max(initial=0))),
        largest(batch_sentences, len),
    ]
