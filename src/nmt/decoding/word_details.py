"""What is known of the words of a translation: how probable they are, and what they attend to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nmt.decoding.attention import Attention
from nmt.decoding.detail import Detail, TranslatedBlock
from nmt.decoding.piece_attention import membership
from nmt.decoding.translation import ScoredToken
from nmt.text.tokenizer import SPACE_MARK
from nmt.text.word_pieces import group_pieces

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine


class TokenScores(Detail):
    """The tokens of a candidate with their scores, which takes one more pass over the translations."""

    def compute(self, engine: "Engine", block: TranslatedBlock) -> list[tuple[ScoredToken, ...]]:
        """See `Detail.compute`."""
        listed = [(ids, each.tokens) for ids, some in zip(block.sources, block.found, strict=True) for each in some]
        scores = engine.token_scores([ids for ids, _ in listed], [tokens for _, tokens in listed])
        pieces = [engine.tokenizer.target_pieces(tokens) for _, tokens in listed]
        # The score of EOS, the last one, belongs to no piece.
        return [tuple(map(ScoredToken, *each)) for each in zip(pieces, scores, strict=True)]


@dataclass(frozen=True, slots=True)
class WordProbability:
    """A word of a translation with its punctuation."""

    text: str
    probability: float


def words_of(tokens: Sequence[ScoredToken], text: str) -> list[WordProbability]:
    """Return the words of a translation; a word's probability is the product of those of its pieces."""
    groups = group_pieces([token.piece for token in tokens])
    probabilities = [math.exp(sum(tokens[index].log_probability for index in group)) for group in groups]
    spelled = spell([token.piece for token in tokens], text)
    return [WordProbability(*each) for each in zip(spelled, probabilities, strict=True)]


def spell(pieces: Sequence[str], text: str) -> list[str]:
    """Return the words of a text that has these pieces: as the text spells them, if it has the same number."""
    spelled = ["".join(pieces[index] for index in group).replace(SPACE_MARK, "") for group in group_pieces(pieces)]
    return text.split() if len(text.split()) == len(spelled) else spelled


def word_attention(attention: Attention) -> npt.NDArray[np.float32]:
    """Return how much each target word attends to each source word (target words, source words).

    The weights of all layers and heads are averaged, over the steps that predict a word, and rows sum to 1. The marks
    at the ends of both sentences do not count.
    """
    weights = attention.cross.mean(axis=(0, 1))  # row i belongs to the step that predicts target piece i
    groups = group_pieces(attention.target[1:]), group_pieces(attention.source[:-1])
    rows, columns = (membership(*each) for each in zip(groups, weights.shape, strict=True))
    found: npt.NDArray[np.float32] = rows @ weights @ columns.T
    found /= np.maximum(found.sum(1, keepdims=True), np.finfo(np.float32).tiny)
    return found
