"""The batches that this project trains on, padded: for engines that take rectangles."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from protocol import Counts

from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.store import PairStore
from nmt.text.special import BOS, EOS, PAD

Ids = npt.NDArray[np.int64]
IGNORE = -100
"""Label of padding, which torch's losses pass over."""


class Rectangles(NamedTuple):
    """A batch, (sentences, longest) each."""

    source: Ids
    source_mask: Ids
    target: Ids
    """What the decoder reads, from its start mark on."""
    labels: Ids
    counts: Counts


def training_batches(folder: Path, batch_tokens: int, seed: int) -> Iterator[Rectangles]:
    """The batches of training, without end: sentences of like length, at most so many tokens a side."""
    store = PairStore.open(folder, "train")
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    epoch = 0
    while True:
        plan = plan_epoch(lengths, batch_tokens, seed, epoch)
        for index in range(len(plan)):
            yield _batch(store, plan[index])
        epoch += 1


def held_out_batches(folder: Path, batch_tokens: int) -> Iterator[Rectangles]:
    """The development set."""
    store = PairStore.open(folder, "valid")
    plan = plan_epoch(PairLengths.with_marks(store.source_lengths, store.target_lengths), batch_tokens, 0, 0)
    return (_batch(store, plan[index]) for index in range(len(plan)))


def _batch(store: PairStore, sentences: npt.NDArray[np.integer]) -> Rectangles:
    sources = [[*store.source(index).tolist(), EOS] for index in sentences]
    targets = [store.target(index).tolist() for index in sentences]
    source = rectangle(sources, PAD)
    labels = rectangle([[*target, EOS] for target in targets], IGNORE)
    counts = Counts(sum(map(len, sources)), int((labels != IGNORE).sum()))
    mask = rectangle([[1] * len(each) for each in sources], 0)
    return Rectangles(source, mask, rectangle([[BOS, *target] for target in targets], PAD), labels, counts)


def rectangle(rows: list[list[int]], filler: int) -> Ids:
    """Rows of one length."""
    longest = max(map(len, rows))
    return np.array([row + [filler] * (longest - len(row)) for row in rows], dtype=np.int64)
