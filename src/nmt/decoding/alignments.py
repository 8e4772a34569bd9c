"""Word alignments of a sentence and its translation, from the decoder's attention to the source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.schema import DecodingConfig
from nmt.config.schema.decoding import ALIGNMENT_STATES
from nmt.decoding.attention import Weights
from nmt.errors import UserError
from nmt.text.alignments import Link


class AlignmentSource(NamedTuple):
    """Which attention weights align."""

    layer: int
    """From 1; 0 is the mean of the last two."""
    head: int
    """From 1; 0 is the mean of all."""
    state: str
    """One of ALIGNMENT_STATES."""

    @classmethod
    def chosen(cls, config: DecodingConfig, layers: int, heads: int) -> "AlignmentSource":
        """Return what the settings choose for a model with these numbers of decoder layers and heads."""
        found = cls(config.alignment_layer, config.alignment_head, config.alignment_state)
        for name, value, limit in (("layer", found.layer, layers), ("head", found.head, heads)):
            if value > limit:
                raise UserError(f"decoding.alignment_{name}={value}, but the model has {limit}")
        return found


@dataclass(frozen=True, slots=True)
class PieceAttention:
    """The attention of the pieces of a translation to those of its source."""

    cross: Weights
    """(layers, heads, target pieces after the start mark, source pieces before the end mark)."""
    source: Sequence[Sequence[int]]
    """The pieces of each source word, without punctuation."""
    target: Sequence[Sequence[int]]
    """The pieces of each target word, without punctuation."""

    def links(self, config: DecodingConfig) -> tuple[Link, ...]:
        """Link each target word to the source word that it attends to most."""
        layer, head, state = AlignmentSource.chosen(config, *self.cross.shape[:2])
        return self._links(self._best(state)[layer, head])

    def links_by_source(self) -> Iterator[tuple[AlignmentSource, tuple[Link, ...]]]:
        """Yield the links by each layer, head and state."""
        for state in ALIGNMENT_STATES:
            best = self._best(state)
            for layer, head in np.ndindex(best.shape[:2]):
                if layer or not head:  # equal numbers do not make heads of two layers alike
                    yield AlignmentSource(layer, head, state), self._links(best[layer, head])

    def _best(self, state: str) -> npt.NDArray[np.int64]:
        """Return the source word that each target word attends to most (1 + layers, 1 + heads, target words).

        The first layer is the mean of the last two, and the first head the mean of all.
        """
        layers, heads, rows, columns = self.cross.shape
        if not self.source:
            return np.zeros((1 + layers, 1 + heads, 0), dtype=np.int64)
        shift = 1 if state == "input" else 0  # step 0 reads the start mark and predicts piece 0
        weights = membership(self.target, rows, shift) @ self.cross @ membership(self.source, columns).T
        weights = np.concatenate([weights[-2:].mean(0, keepdims=True), weights])
        weights = np.concatenate([weights.mean(1, keepdims=True), weights], 1)
        best: npt.NDArray[np.int64] = weights.argmax(-1)
        return best

    def _links(self, best: npt.NDArray[np.int64]) -> tuple[Link, ...]:
        return tuple((word, index) for index, word in enumerate(best.tolist()) if self.target[index])


def membership(words: Sequence[Sequence[int]], pieces: int, shift: int = 0) -> npt.NDArray[np.float32]:
    """Return a matrix (words, pieces) that is 1 where a piece, counted from `shift`, belongs to a word."""
    found = np.zeros((len(words), pieces), dtype=np.float32)
    for word, members in enumerate(words):
        found[word, [piece + shift for piece in members]] = 1
    return found
