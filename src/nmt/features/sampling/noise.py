"""Random numbers for sampling and for noisy beam search that depend only on a seed, the sentence and the tokens so far.

So a translation that is drawn at random does not depend on the batch in which the sentence is decoded, or on the device
or process that decodes it. A sentence that occurs twice is translated in the same way both times.
"""

from collections.abc import Sequence
from copy import copy
from functools import cache
from hashlib import blake2b
from typing import Self

import numpy as np
import torch
from torch import Tensor

from nmt.decoding.beam import NextTokenScorer
from nmt.model.kernels.random_masks import mix

TABLE_SIZE = 1 << 20
"""Starts of rows in the table of random numbers."""


def sentence_seeds(sentences: Sequence[Sequence[int]], seed: int, device: torch.device) -> Tensor:
    """Return a seed (B,) for each sentence, given its token ids and the seed of the run."""
    digests = [blake2b(np.array([seed, *ids], "<i8").tobytes(), digest_size=4).digest() for ids in sentences]
    return torch.tensor([int.from_bytes(digest, "little") for digest in digests], device=device)


class SeededNoise:
    """Gumbel noise for the scores of the next tokens of hypotheses.

    The token with the highest sum of log-probability and Gumbel noise is a sample from the distribution.
    """

    def __init__(self, seeds: Tensor) -> None:
        """Begin a hypothesis per seed (R,), without tokens."""
        self._states = mix(seeds)

    def split(self, rows: int) -> list[Self]:
        """Return the hypotheses in parts of this many."""
        parts = []
        for states in self._states.split(rows):
            parts.append(copy(self))
            parts[-1]._states = states
        return parts

    def extend(self, tokens: Tensor, parents: Tensor) -> None:
        """Replace the hypotheses: the new row r extends the old row `parents[r]` by `tokens[r]`."""
        self._states = mix(self._states[parents] ^ tokens)

    def draw(self, vocabulary: int, tokens: Tensor | None = None) -> Tensor:
        """Return the noise (R, V) for the next token of each hypothesis, or (R, C) for these tokens (R, C) only."""
        table = _table(vocabulary, self._states.device)
        if tokens is not None:
            return table[(self._states % TABLE_SIZE)[:, None] + tokens]
        # A row is a stretch of the table, which is much faster than computing random numbers for each token.
        return table.unfold(0, vocabulary, 1)[self._states % TABLE_SIZE]


def noisy_scorer(scorer: NextTokenScorer, seeds: Tensor, scale: float) -> NextTokenScorer:
    """Return a scorer that adds noise to the scores. A beam of 1 then draws a sample, with `scale` as temperature.

    Args:
        scorer: the scorer of a model.
        seeds: (B,) the seed of each sentence.
        scale: factor of the noise.
    """
    noise = SeededNoise(seeds)

    def noisy(tokens: Tensor, parents: Tensor) -> Tensor:
        noise.extend(tokens, parents)
        scores = scorer(tokens, parents)
        return scores.float() + scale * noise.draw(scores.shape[1])

    return noisy


@cache
def _table(vocabulary: int, device: torch.device) -> Tensor:
    """Return numbers with Gumbel's distribution, enough for a row of this many at each place."""
    generator = torch.Generator().manual_seed(1)
    exponential = torch.empty(TABLE_SIZE + vocabulary).exponential_(generator=generator).clamp_(min=1e-30)
    return -exponential.log().to(device)
