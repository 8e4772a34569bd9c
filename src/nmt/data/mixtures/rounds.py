"""Plan the global batches of a mixture of corpora in rounds, as an epoch is planned without a mixture.

Each corpus is an endless sequence of passes over its pairs, each pass in an order of its own. A round takes the next
pairs of every corpus, in the proportion of the corpora's shares of the tokens, and divides them into global batches of
similar lengths. So every batch is a mixture, and no pair occurs again before all others of its corpus, unless that is
so small that the fewest batches of a round need it more than once.

A plan depends only on lengths, shares, seed and what earlier rounds have used: the number of their batches, then the
number of pairs taken from each corpus. This is part of the position in the data, so resuming reads nothing before it.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from nmt.config.data import DataConfig, corpora_of
from nmt.data.batches import EpochPlan, IntArray, PairLengths, divide_pairs
from nmt.data.batching import Batching
from nmt.data.mixtures.settings import Stage, training_stages

ROUND_BATCHES, FEWEST_BATCHES = 250, 20
"""About how many global batches a round has: enough to find sentences of similar lengths. It has fewer, but not very
few, if it would otherwise pass over a small corpus several times, whose pairs would meet their copies in a batch."""


@dataclass(frozen=True, slots=True)
class StageShares:
    """The share of each corpus in the tokens of a stage of training."""

    shares: npt.NDArray[np.float64]
    """They add up to 1; 0 if the stage does not use the corpus."""
    end: int
    """The last step of the stage."""


def stage_shares(data: DataConfig, tokens: Mapping[str, int]) -> list[StageShares]:
    """Return the shares of the corpora in each stage, given the number of tokens in each corpus."""
    return [
        StageShares(shares_of(data, stage, tokens), sys.maxsize if stage.until is None else stage.until)
        for stage in training_stages(data)
    ]


def shares_of(data: DataConfig, stage: Stage, sizes: Mapping[str, int]) -> npt.NDArray[np.float64]:
    """Return the shares of the corpora in a stage, given their sizes."""
    corpora, temperature = corpora_of(data), data.temperature
    exponent = 1 / temperature if temperature else 0.0
    weights = np.zeros(len(sizes))
    for index, name in enumerate(sizes):
        if name in stage.weights:
            given = stage.weights[name]
            weight = corpora[name].settings.weight if given is None else given
            weights[index] = weight * sizes[name] ** exponent
    weights /= weights.sum()
    return weights


class RoundPlanner:
    """Plans the rounds of a mixture, one after the other."""

    def __init__(
        self,
        lengths: PairLengths,
        sizes: Sequence[int],
        stages: Sequence[StageShares],
        batching: Batching,
        before: tuple[int, ...] = (),
    ) -> None:
        """Continue after earlier rounds.

        Args:
            lengths: The lengths of all pairs, one corpus after the other.
            sizes: The number of pairs in each corpus.
            stages: The shares of the corpora in each stage.
            batching: How the pairs are divided into global batches.
            before: What earlier rounds have used: batches, then pairs of each corpus; empty at the beginning.
        """
        self._lengths, self._sizes, self._stages = lengths, sizes, stages
        self._batching = batching
        self._before = before or (0,) * (len(sizes) + 1)
        self._starts = np.cumsum([0, *sizes])
        self._means = np.array(
            [
                [side[start : start + size].mean() for side in (lengths.source, lengths.target)]
                for start, size in zip(self._starts[:-1], sizes, strict=True)
            ]
        )
        self._passes: dict[int, tuple[int, IntArray]] = {}

    def __call__(self, number: int) -> EpochPlan:
        """Plan the next round, which has this number."""
        batches, *taken = self._before
        stage = next(stage for stage in self._stages if batches < stage.end)
        random = np.random.default_rng([self._batching.seed, number])
        per_batch = self._pairs_per_batch(stage.shares)
        counts = self._pairs(per_batch, min(self._batches(per_batch), stage.end - batches), random)
        drawn = [self._draw(corpus, taken[corpus], count) for corpus, count in enumerate(counts)]
        order = random.permutation(np.concatenate(drawn))
        plan = divide_pairs(order, self._lengths, self._batching, random)
        bounds = plan.bounds[: stage.end - batches]  # the next stage must begin at its step
        after = (batches + len(bounds), *(start + count for start, count in zip(taken, counts, strict=True)))
        before, self._before = self._before, after
        return EpochPlan(plan.order, bounds, before, after)

    def _pairs_per_batch(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how many pairs of each corpus a batch has on average."""
        of_pairs = shares / self._means.sum(axis=1)
        tokens = (of_pairs @ self._means).max()
        return cast("npt.NDArray[np.float64]", of_pairs * self._batching.tokens / tokens)

    def _batches(self, per_batch: npt.NDArray[np.float64]) -> int:
        """Return the number of batches of a round."""
        used = per_batch > 0
        in_a_pass = (np.array(self._sizes)[used] / per_batch[used]).min()
        return min(ROUND_BATCHES, max(FEWEST_BATCHES, int(in_a_pass)))

    def _pairs(self, per_batch: npt.NDArray[np.float64], batches: int, random: np.random.Generator) -> list[int]:
        """Return how many pairs of each corpus fill a number of batches.

        They are rounded up or down at random, so that the shares are right in the long run even if they are tiny.
        """
        counts = np.floor(batches * per_batch + random.random(len(per_batch)))
        counts[per_batch.argmax()] = max(counts[per_batch.argmax()], 1)
        return [int(count) for count in counts]

    def _draw(self, corpus: int, start: int, count: int) -> IntArray:
        """Return `count` pairs of a corpus from a place in its endless sequence on."""
        size = self._sizes[corpus]
        parts: list[IntArray] = [np.zeros(0, np.int32)]
        while count:
            number, offset = divmod(start, size)
            parts.append(self._pass(corpus, number)[offset : offset + count])
            start, count = start + len(parts[-1]), count - len(parts[-1])
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
