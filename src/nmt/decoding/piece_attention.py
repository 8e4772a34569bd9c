"""How the pieces of translations attend to those of their sources, and sums of it over the pieces of words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.text.special import BOS, EOS
from nmt.text.word_pieces import spoken_pieces

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine

ATTENTION_TOKENS = 1024
"""The largest number of tokens in a batch whose attention weights are kept."""

T = TypeVar("T")
Weights = npt.NDArray[np.float32]
"""(layers, heads, queries, keys)."""


@dataclass(frozen=True, slots=True)
class PieceAttention:
    """The attention of the pieces of a translation to those of its source."""

    cross: Weights
    """(layers, heads, start mark and target pieces, source pieces and end mark)."""
    source: Sequence[Sequence[int]]
    """The pieces of each source word, without punctuation."""
    target: Sequence[Sequence[int]]
    """The pieces of each target word, without punctuation."""


def attend(
    engine: "Engine", sources: Sequence[str], targets: Sequence[str], read: Callable[[int, PieceAttention], T]
) -> list[T]:
    """Return what `read` makes of the index of each pair of lines and of the target's attention to the source.

    Only the beginning of a sentence that is too long counts.
    """
    from nmt.decoding.batches import batches_by_length  # noqa: PLC0415 - imports torch, which a server does without

    tokenizer = engine.tokenizer
    source_ids = [ids[: engine.max_source_tokens - 1] for ids in tokenizer.encode_input(sources)]
    target_ids = [ids[: engine.max_target_tokens - 1] for ids in tokenizer.encode_target(targets)]
    lengths = [1 + max(map(len, each)) for each in zip(source_ids, target_ids, strict=True)]
    found: dict[int, T] = {}
    for batch in batches_by_length(lengths, min(engine.config.batch_tokens, ATTENTION_TOKENS)):
        weights = engine.cross_attention(
            [[*source_ids[index], EOS] for index in batch], [[BOS, *target_ids[index]] for index in batch]
        )
        for index, each in zip(batch, weights, strict=True):
            source_words = spoken_pieces(tokenizer.source_pieces(source_ids[index]), sources[index])
            target_words = spoken_pieces(tokenizer.target_pieces(target_ids[index]), targets[index])
            found[index] = read(index, PieceAttention(each, source_words, target_words))
    return [found[index] for index in range(len(sources))]


def membership(words: Sequence[Sequence[int]], pieces: int, shift: int = 0) -> npt.NDArray[np.float32]:
    """Return a matrix (words, pieces) that is 1 where a piece, counted from `shift`, belongs to a word."""
    found = np.zeros((len(words), pieces), dtype=np.float32)
    for word, members in enumerate(words):
        found[word, [piece + shift for piece in members]] = 1
    return found
