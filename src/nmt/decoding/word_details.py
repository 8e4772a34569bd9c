"""What is known of the words of a translation: how probable they are, and what they attend to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nmt.decoding.translation import ScoredToken
from nmt.text.words import Word

if TYPE_CHECKING:
    from nmt.decoding.attention import Weights


@dataclass(frozen=True, slots=True)
class WordProbability:
    """A word of a translation with its punctuation."""

    text: str
    probability: float


def word_probabilities(words: Sequence[Word], tokens: Sequence[ScoredToken]) -> list[WordProbability]:
    """Return the words of a translation; a word's probability is the product of those of its pieces."""
    return [
        WordProbability(word.text, math.exp(sum(tokens[index].log_probability for index in word.pieces)))
        for word in words
    ]


def word_attention(cross: "Weights", source: Sequence[Word], target: Sequence[Word]) -> npt.NDArray[np.float32]:
    """Return how much each target word attends to each source word (target words, source words).

    The weights of all layers and heads are averaged, over the steps that predict a word, and rows sum to 1, except for
    words without pieces of their own. The marks at the ends of both sentences do not count.
    """
    weights = cross.mean(axis=(0, 1))  # row i belongs to the step that predicts target piece i
    pieces = ([word.pieces for word in words] for words in (target, source))
    rows, columns = (membership(*each) for each in zip(pieces, weights.shape, strict=True))
    found: npt.NDArray[np.float32] = rows @ weights @ columns.T
    found /= np.maximum(found.sum(1, keepdims=True), np.finfo(np.float32).tiny)
    return found


def membership(words: Sequence[Sequence[int]], pieces: int, shift: int = 0) -> npt.NDArray[np.float32]:
    """Return a matrix (words, pieces) that is 1 where a piece, counted from `shift`, belongs to a word."""
    found = np.zeros((len(words), pieces), dtype=np.float32)
    for word, members in enumerate(words):
        found[word, [piece + shift for piece in members]] = 1
    return found
