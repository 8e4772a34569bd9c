"""The attention between the pieces of two sentences, and sums of it over the pieces of words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]
"""(layers, heads, queries, keys)."""


@dataclass(frozen=True, slots=True)
class PieceAttention:
    """The attention of the pieces of a translation to those of its source."""

    cross: Weights
    """(layers, heads, target pieces after the start mark, source pieces before the end mark)."""
    source: Sequence[Sequence[int]]
    """The pieces of each source word, without punctuation."""
    target: Sequence[Sequence[int]]
    """The pieces of each target word, without punctuation."""


def membership(words: Sequence[Sequence[int]], pieces: int, shift: int = 0) -> npt.NDArray[np.float32]:
    """Return a matrix (words, pieces) that is 1 where a piece, counted from `shift`, belongs to a word."""
    found = np.zeros((len(words), pieces), dtype=np.float32)
    for word, members in enumerate(words):
        found[word, [piece + shift for piece in members]] = 1
    return found
