"""Read nmt's batches as padded arrays, for engines that train on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from protocol import Counts

from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.store import PairStore
from nmt.text.special import BOS, EOS, PAD

Ids = npt.NDArray[np.int64]
IGNORE = -100
"""Label of padding, which torch's losses ignore."""


class PaddedBatch(NamedTuple):
    """A batch of padded arrays, each (sentences, longest sentence)."""

    source: Ids
    source_mask: Ids
    target: Ids
    """The decoder's input, which begins with the start mark."""
    labels: Ids
    counts: Counts


def training_batches(folder: Path, batch_tokens: int, seed: int) -> Iterator[PaddedBatch]:
    """Yield training batches forever: sentences of similar length, at most `batch_tokens` source and target tokens."""
    store = PairStore.open(folder, "train")
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    epoch = 0
    while True:
        plan = plan_epoch(lengths, Batching(batch_tokens, seed), epoch)
        for index in range(len(plan)):
            yield _batch(store, plan[index])
        epoch += 1


def held_out_batches(folder: Path, batch_tokens: int) -> Iterator[PaddedBatch]:
    """Return the batches of the development set."""
    store = PairStore.open(folder, "valid")
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    plan = plan_epoch(lengths, Batching(batch_tokens, seed=0), epoch=0)
    return (_batch(store, plan[index]) for index in range(len(plan)))


def _batch(store: PairStore, sentences: npt.NDArray[np.integer]) -> PaddedBatch:
    sources = [[*store.source(index).tolist(), EOS] for index in sentences]
    targets = [store.target(index).tolist() for index in sentences]
    source = pad(sources, PAD)
    labels = pad([[*target, EOS] for target in targets], IGNORE)
    counts = Counts(sum(map(len, sources)), int((labels != IGNORE).sum()))
    mask = pad([[1] * len(each) for each in sources], 0)
    return PaddedBatch(source, mask, pad([[BOS, *target] for target in targets], PAD), labels, counts)


def pad(rows: list[list[int]], filler: int) -> Ids:
    """Return the rows as one array, with `filler` after the shorter ones."""
    longest = max(map(len, rows))
    return np.array([row + [filler] * (longest - len(row)) for row in rows], dtype=np.int64)
