"""Word alignments of sentences and their translations, from the decoder's attention to the source.

The head that has learned alignments gives them (guided alignment), or the mean of the last two layers if none has.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.decoding.batches import batches_by_length
from nmt.decoding.word_details import membership
from nmt.text.alignments import Link
from nmt.text.special import BOS, EOS
from nmt.text.words import spoken_pieces

if TYPE_CHECKING:
    from nmt.decoding.attention import Weights
    from nmt.decoding.engine import Engine

ATTENTION_TOKENS = 1024
"""The largest number of tokens in a batch whose attention weights are kept."""


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
    cross: "Weights", source: Sequence[Sequence[int]], target: Sequence[Sequence[int]], *, guided: bool
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
