"""Sentences of ids, one after the other, as noise receives and returns them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from nmt.data.batches import IntArray
from nmt.data.noise.draws import Draws
from nmt.data.store import take

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sentences:
    """One side of some pairs."""

    tokens: IntArray
    """The ids of all sentences, without special ones."""
    lengths: IntArray

    @classmethod
    def of_ids(cls, tokens: IntArray, lengths: IntArray) -> Self:
        """Return sentences whose ids are concatenated, in a type with room for computations."""
        return cls(tokens.astype(np.int64), lengths)

    def numbers(self) -> IntArray:
        """Return for each token the number of its sentence."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def word_starts(self, begins_word: Flags) -> IntArray:
        """Return the indices of the tokens that begin a word, given which tokens of the vocabulary do."""
        starts = begins_word[self.tokens]
        starts[self.starts()[self.lengths > 0]] = True
        return np.flatnonzero(starts)

    def replaced(self, others: Self, chosen: Flags) -> Self:
        """Return these sentences with the chosen ones replaced by others."""
        lengths = np.where(chosen, others.lengths, self.lengths)
        starts = np.where(chosen, len(self.tokens) + others.starts(), self.starts())
        return type(self)(take(np.concatenate((self.tokens, others.tokens)), starts, lengths), lengths)

    def after(self, starts: Self) -> Self:
        """Return the sentences that begin with other ones and go on with these."""
        tokens = np.concatenate((starts.tokens, self.tokens))
        owners = np.concatenate((starts.numbers(), self.numbers()))
        return type(self)(tokens[np.argsort(owners, kind="stable")], starts.lengths + self.lengths)

    def starts(self) -> IntArray:
        """Return the index at which each sentence starts."""
        return np.cumsum(self.lengths) - self.lengths


@dataclass(frozen=True, slots=True)
class NoisyPairs:
    """Pairs while noise is applied to them, with their random numbers."""

    source: Sentences
    target: Sentences
    draws: Draws

    def replaced(self, others: Self, chosen: Flags) -> Self:
        """Return these pairs with the chosen ones replaced by others."""
        source, target = self.source.replaced(others.source, chosen), self.target.replaced(others.target, chosen)
        return type(self)(source, target, self.draws)
