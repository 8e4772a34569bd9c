"""Plan the global batches of a mixture of corpora.

Each corpus is an endless sequence of passes over its pairs, each pass in an order of its own. An epoch takes the next
pairs of every corpus, in the proportion of the corpora's shares of the tokens, until one corpus has been passed over
once. All of these pairs are divided into global batches together. So every batch is a mixture, and no pair occurs again
before all others of its corpus. A plan depends only on lengths, shares, seed and epoch.
"""

from collections.abc import Sequence

import numpy as np

from nmt.data.batches import Batching, EpochPlan, IntArray, PairLengths, divide_pairs

FEWEST_BATCHES = 20
"""About the fewest global batches of an epoch, which passes over a tiny corpus several times if need be."""


class MixturePlan:
    """Plans the epochs of a mixture."""

    def __init__(self, lengths: PairLengths, sizes: Sequence[int], shares: Sequence[float], batching: Batching) -> None:
        """Take the lengths of all pairs, one corpus after the other, and the sizes of the corpora and their shares."""
        self._lengths, self._sizes, self._batching = lengths, sizes, batching
        self._starts = np.cumsum([0, *sizes])[:-1]
        tokens = np.add.reduceat(np.add(lengths.source, lengths.target, dtype=np.int64), self._starts)
        weights = np.array(shares)
        of_epoch = max((tokens / weights).min(), FEWEST_BATCHES * 2 * batching.tokens)
        self._pairs: list[float] = (weights * of_epoch * sizes / tokens).tolist()
        """The mean number of pairs of each corpus in an epoch."""
        self._passes: dict[int, tuple[int, IntArray]] = {}

    def __call__(self, epoch: int) -> EpochPlan:
        """Plan an epoch."""
        random = np.random.default_rng([self._batching.seed, epoch])
        drawn = [
            self._draw(corpus, int(epoch * pairs), int((epoch + 1) * pairs)) for corpus, pairs in enumerate(self._pairs)
        ]
        return divide_pairs(random.permutation(np.concatenate(drawn)), self._lengths, self._batching, random)

    def _draw(self, corpus: int, start: int, end: int) -> IntArray:
        """Return the pairs of a corpus between two places in its endless sequence."""
        size = self._sizes[corpus]
        parts: list[IntArray] = [np.zeros(0, np.int32)]
        while start < end:
            number, offset = divmod(start, size)
            parts.append(self._pass(corpus, number)[offset : offset + end - start])
            start += len(parts[-1])
        return np.concatenate(parts)

    def _pass(self, corpus: int, number: int) -> IntArray:
        """Return the pairs of a corpus in the order of one of its passes."""
        known, order = self._passes.get(corpus, (-1, None))
        if known != number or order is None:
            # without a zero: it would change nothing
            random = np.random.default_rng([self._batching.seed, number, corpus + 1])
            start = self._starts[corpus]
            order = random.permutation(np.arange(start, start + self._sizes[corpus], dtype=np.int32))
            self._passes[corpus] = number, order
        return order
