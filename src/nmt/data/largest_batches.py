"""The micro-batches that may need the most memory, which training tries before its first step."""

from collections.abc import Callable

import numpy as np

from nmt.data.batches import Batching, IntArray, plan_epoch, split_batch
from nmt.data.loader import CPU_SHAPES, MicroBatch, assemble
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore

CANDIDATE_BATCHES = 64
"""How many of the largest global batches may have the largest micro-batch: it need not be in the very largest."""


def largest_micro_batches(
    store: PairStore,
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
    lengths = store.pair_lengths
    tokens, longest = np.add(*lengths, dtype=np.int64), np.maximum(*lengths)
    plan = plan_epoch(lengths, batching, epoch=0)
    batches = [plan[index] for index in range(len(plan))]

    def largest(measure: Callable[[IntArray], int]) -> MicroBatch:
        candidates = sorted(batches, key=measure)[-CANDIDATE_BATCHES:]
        parts = (split_batch(batch, lengths, devices * threads, device_tokens // threads) for batch in candidates)
        return assemble(store, max((pairs for part in parts for pairs in part), key=measure), shapes=shapes)

    return [
        largest(lambda pairs: int(tokens[pairs].sum())),
        largest(lambda pairs: int(tokens[pairs].sum()) * int(longest[pairs].max(initial=0))),
        largest(len),
    ]
