"""The training text of one corpus, or of several that are mixed: their stores look like one.

Each corpus of a mixture is an endless sequence of passes over its pairs, each pass in an order of its own. An epoch
takes the next pairs of every corpus, in the proportion of the corpora's shares of the tokens, until one corpus has been
passed over once. All of these pairs are divided into global batches together. So every batch is a mixture, and no pair
occurs again before all others of its corpus. A plan depends only on lengths, shares, seed and epoch.
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from nmt.config.data import DataConfig, corpora_of
from nmt.data.batches import Batching, EpochPlan, IntArray, PairLengths, PlanOf, divide_pairs
from nmt.data.corpora import training_splits
from nmt.data.store import SIDES, Ids, LengthArray, PairStore, take

MIN_BATCHES = 20
"""About the fewest global batches of an epoch, which passes over a tiny corpus several times if need be."""


def open_training_text(folder: Path, data: DataConfig) -> PairStore:
    """Open the training text in a folder."""
    stores = {each.corpus: PairStore.open(folder, each.name) for each in training_splits(data)}
    if len(stores) == 1:
        return next(iter(stores.values()))
    tokens = {name: sum(len(store.columns[side].tokens) for side in SIDES) for name, store in stores.items()}
    return MixedStore(stores, shares_of(data, tokens))


def shares_of(data: DataConfig, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the shares of the corpora in the training tokens, given their sizes; they add up to 1."""
    corpora = corpora_of(data)
    exponent = 1 / data.temperature if data.temperature else 0.0
    weights = {name: corpora[name].settings.weight * size**exponent for name, size in sizes.items()}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


class MixedStore(PairStore):
    """The pairs of several corpora, one corpus after the other."""

    def __init__(self, stores: Mapping[str, PairStore], shares: Mapping[str, float]) -> None:
        """Take the stores by the names of their corpora, and the shares of these in the tokens."""
        self.corpora, self._stores = tuple(stores), list(stores.values())
        self._shares = [shares[name] for name in stores]
        self._starts = np.cumsum([0, *map(len, self._stores)])

    def __len__(self) -> int:
        """Return the number of pairs."""
        return int(self._starts[-1])

    @property
    def checksums(self) -> list[str]:
        """See `PairStore`."""
        return [checksum for store in self._stores for checksum in store.checksums]

    def lengths(self, column: str) -> LengthArray:
        """See `PairStore`."""
        return np.concatenate([store.lengths(column) for store in self._stores])

    def gather(self, column: str, pairs: IntArray, limit: int = sys.maxsize) -> tuple[Ids, IntArray]:
        """See `PairStore`."""
        corpora, parts = self.corpora_of(pairs), []
        for corpus, (store, start) in enumerate(zip(self._stores, self._starts, strict=False)):
            parts.append(store.gather(column, pairs[corpora == corpus] - start, limit))
        tokens, lengths = map(np.concatenate, zip(*parts, strict=True))
        back = np.argsort(np.argsort(corpora, kind="stable"))
        return take(tokens, (lengths.cumsum() - lengths)[back], lengths[back]), lengths[back]

    def verify(self) -> None:
        """See `PairStore`."""
        for store in self._stores:
            store.verify()

    def corpora_of(self, pairs: IntArray) -> IntArray:
        """See `PairStore`."""
        return np.searchsorted(self._starts, pairs, side="right") - 1

    def planner(self, lengths: PairLengths, batching: Batching) -> PlanOf:
        """Return what plans the epochs of the mixture."""
        starts, sizes, weights = self._starts[:-1], np.diff(self._starts), np.array(self._shares)
        tokens = np.add.reduceat(np.add(lengths.source, lengths.target, dtype=np.int64), starts)
        of_epoch = max((tokens / weights).min(), MIN_BATCHES * 2 * batching.tokens)
        pairs: list[float] = (weights * of_epoch * sizes / tokens).tolist()
        passes = [Passes(batching.seed, corpus, *each) for corpus, each in enumerate(zip(starts, sizes, strict=True))]
        return partial(_plan, lengths, batching, dict(zip(passes, pairs, strict=True)))


def _plan(lengths: PairLengths, batching: Batching, passes: "Mapping[Passes, float]", epoch: int) -> EpochPlan:
    """Plan an epoch, given the mean number of pairs of each corpus in an epoch."""
    random = np.random.default_rng([batching.seed, epoch])
    drawn = [each.draw(int(epoch * pairs), int((epoch + 1) * pairs)) for each, pairs in passes.items()]
    return divide_pairs(random.permutation(np.concatenate(drawn)), lengths, batching, random)


class Passes:
    """The endless sequence of the pairs of a corpus."""

    def __init__(self, seed: int, corpus: int, start: int, size: int) -> None:
        """Take the corpus by its number, and its pairs from `start` on."""
        self._seed, self._corpus, self._start, self._size = seed, corpus, start, size
        self._last: tuple[int, IntArray] = (-1, np.zeros(0, np.int32))
        """The last pass that was used, which the next epoch mostly goes on with."""

    def draw(self, start: int, end: int) -> IntArray:
        """Return the pairs between two places in the sequence."""
        parts: list[IntArray] = [np.zeros(0, np.int32)]
        while start < end:
            number, offset = divmod(start, self._size)
            parts.append(self._order(number)[offset : offset + end - start])
            start += len(parts[-1])
        return np.concatenate(parts)

    def _order(self, number: int) -> IntArray:
        """Return the pairs in the order of one of the passes."""
        if self._last[0] != number:
            random = np.random.default_rng([self._seed, number, self._corpus + 1])  # a zero would change nothing
            pairs = np.arange(self._start, self._start + self._size, dtype=np.int32)
            self._last = number, random.permutation(pairs)
        return self._last[1]
