"""Word alignments of a sentence and its translation, from the decoder's attention to the source."""

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from nmt.config.schema import DecodingConfig
from nmt.decoding.piece_attention import PieceAttention, membership
from nmt.errors import UserError
from nmt.features.alignments.settings import ALIGNMENT_STATES, AlignedDecoding
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
        aligned = cast(AlignedDecoding, config)
        found = cls(aligned.alignment_layer, aligned.alignment_head, aligned.alignment_state)
        for name, value, limit in (("layer", found.layer, layers), ("head", found.head, heads)):
            if value > limit:
                raise UserError(f"decoding.alignment_{name}={value}, but the model has {limit}")
        return found


def links(pair: PieceAttention, config: DecodingConfig) -> tuple[Link, ...]:
    """Link each target word to the source word that it attends to most."""
    layer, head, state = AlignmentSource.chosen(config, *pair.cross.shape[:2])
    return _links(pair, _best(pair, state)[layer, head])


def links_by_source(pair: PieceAttention) -> Iterator[tuple[AlignmentSource, tuple[Link, ...]]]:
    """Yield the links by each layer, head and state."""
    for state in ALIGNMENT_STATES:
        best = _best(pair, state)
        for layer, head in np.ndindex(best.shape[:2]):
            if layer or not head:  # equal numbers do not make heads of two layers alike
                yield AlignmentSource(layer, head, state), _links(pair, best[layer, head])


def _best(pair: PieceAttention, state: str) -> npt.NDArray[np.int64]:
    """Return the source word that each target word attends to most (1 + layers, 1 + heads, target words).

    The first layer is the mean of the last two, and the first head the mean of all.
    """
    layers, heads, rows, columns = pair.cross.shape
    if not pair.source:
        return np.zeros((1 + layers, 1 + heads, 0), dtype=np.int64)
    shift = 1 if state == "input" else 0  # step 0 reads the start mark and predicts piece 0
    weights = membership(pair.target, rows, shift) @ pair.cross @ membership(pair.source, columns).T
    weights = np.concatenate([weights[-2:].mean(0, keepdims=True), weights])
    weights = np.concatenate([weights.mean(1, keepdims=True), weights], 1)
    best: npt.NDArray[np.int64] = weights.argmax(-1)
    return best


def _links(pair: PieceAttention, best: npt.NDArray[np.int64]) -> tuple[Link, ...]:
    return tuple((word, index) for index, word in enumerate(best.tolist()) if pair.target[index])
