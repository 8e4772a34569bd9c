"""The attention weights of a sentence and its translation, and word alignments from them.

The head that has learned alignments gives them (guided alignment), or the mean of the last two layers if none has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from nmt.decoding.batches import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, batches_by_length
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.alignments import Link
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer
from nmt.text.words import Word, spoken_pieces

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine

Weights = npt.NDArray[np.float32]
"""(layers, heads, queries, keys)."""
START, END = "⟨s⟩", "⟨/s⟩"
KINDS = ("encoder", "decoder", "cross")
ATTENTION_TOKENS = 1024
"""The largest number of tokens in a batch whose attention weights are kept."""


@dataclass(frozen=True, slots=True)
class Attention:
    """All attention weights of a sentence and its translation."""

    source: list[str]
    """Word pieces that the encoder reads."""
    target: list[str]
    """Word pieces that the decoder reads, from the start mark on."""
    encoder: Weights
    decoder: Weights
    cross: Weights

    def of_kind(self, kind: str) -> tuple[Weights, list[str], list[str]]:
        """Return the weights of one of KINDS with the pieces of its queries and of its keys."""
        kinds = {
            "encoder": (self.encoder, self.source, self.source),
            "decoder": (self.decoder, self.target, self.target),
            "cross": (self.cross, self.target, self.source),
        }
        return kinds[kind]


def compute_attention(
    model: TranslationModel,
    tokenizer: Tokenizer,
    source: str,
    target: str,
    max_tokens: tuple[int, int] = (MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS),
) -> Attention:
    """Return the attention weights of a sentence and its translation.

    Of a longer sentence, only the beginning counts: `max_tokens` of both sides, with their marks.
    """
    source_ids = tokenizer.encode_input([source])[0][: max_tokens[0] - 1]
    target_ids = tokenizer.encode_target([target])[0][: max_tokens[1] - 1]
    device = model.projection.device
    stream = Packed.from_sentences([[*source_ids, EOS]]).to(device)
    prefix = Packed.from_sentences([[BOS, *target_ids]]).to(device)
    with torch.no_grad():
        (maps,) = model.attention(stream, prefix)
    return Attention(
        [*tokenizer.source_pieces(source_ids), END],
        [START, *tokenizer.target_pieces(target_ids)],
        *(weights.cpu().numpy() for weights in maps),
    )


def guided_layer(layers: int) -> int:
    """Return the decoder layer whose first head can learn alignments: the last but one, or the only one."""
    return max(0, layers - 2)


def align(engine: "Engine", sources: Sequence[str], targets: Sequence[str]) -> list[tuple[Link, ...]]:
    """Link each word of each target line to the source word that it attends to most.

    Only the beginning of a sentence that is too long counts.
    """
    tokenizer = engine.tokenizer
    source_ids = [ids[: engine.max_source_tokens - 1] for ids in tokenizer.encode_input(sources)]
    target_ids = [ids[: engine.max_target_tokens - 1] for ids in tokenizer.encode_target(targets)]
    lengths = [1 + max(map(len, each)) for each in zip(source_ids, target_ids, strict=True)]
    found: dict[int, tuple[Link, ...]] = {}
    for batch in batches_by_length(lengths, min(engine.config.batch_tokens, ATTENTION_TOKENS)):
        weights = engine.cross_attention(
            [[*source_ids[index], EOS] for index in batch], [[BOS, *target_ids[index]] for index in batch]
        )
        for index, each in zip(batch, weights, strict=True):
            source = spoken_pieces(tokenizer.source_pieces(source_ids[index]), sources[index])
            target = spoken_pieces(tokenizer.target_pieces(target_ids[index]), targets[index])
            found[index] = links(each, source, target, guided=engine.guided)
    return [found[index] for index in range(len(sources))]


def links(
    cross: Weights, source: Sequence[Sequence[int]], target: Sequence[Sequence[int]], *, guided: bool
) -> tuple[Link, ...]:
    """Link each target word to the source word that it attends to most, given the pieces of the words.

    A head that has learned alignments is asked at the step that reads a piece, the others at the one that predicts it.
    """
    if not source:
        return ()
    layer = guided_layer(len(cross))
    chosen, shift = (cross[layer : layer + 1, :1], 1) if guided else (cross[-2:], 0)
    _, _, rows, columns = cross.shape
    attention = (membership(target, rows, shift) @ chosen @ membership(source, columns).T).mean(0).mean(0)
    best = attention.argmax(-1).tolist()
    return tuple((index, word) for word, index in enumerate(best) if target[word])


def word_attention(cross: Weights, source: Sequence[Word], target: Sequence[Word]) -> npt.NDArray[np.float32]:
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
