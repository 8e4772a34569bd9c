"""The words that are likely to come next in a translation."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.decoding.translation import WordProbability
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK

if TYPE_CHECKING:
    from nmt.decoding.torch_engine import TorchEngine

MAX_PIECES = 16
"""A word has fewer word pieces."""
ROWS_PER_WORD = 4
"""Unfinished words that are kept open for each word that is wanted."""


class Word(NamedTuple):
    """The tokens of a word, and the log-probability that it comes next, whole."""

    tokens: list[int]
    log_probability: float


def likely_words(engine: "TorchEngine", source: str, beginning: str, count: int) -> list[WordProbability]:
    """Return the words that are most likely to follow the beginning of a translation, most likely first."""
    tokenizer = engine.tokenizer
    begins_word = [piece.startswith(SPACE_MARK) for piece in tokenizer.vocabularies[1]]
    text = tokenizer.with_spaces[1](beginning.rstrip())
    limit = engine.max_target_tokens
    prefix = tokenizer.encode_target([text])[0][: max(0, limit - MAX_PIECES)]
    with engine.scorer_of(source) as scorer:
        if scorer is None:
            return []
        words = next_words(scorer, prefix, torch.tensor(begins_word), count, room=limit - len(prefix))
    probabilities: dict[str, float] = {}
    for word in words:
        text = tokenizer.decode(word.tokens)  # several sequences of pieces may spell the same word
        probabilities[text] = probabilities.get(text, 0.0) + math.exp(word.log_probability)
    probabilities.pop("", None)  # a space that no text follows
    ranked = sorted(probabilities.items(), key=lambda word: -word[1])
    return [WordProbability(*word) for word in ranked]


def next_words(
    scorer: NextTokenScorer, prefix: Sequence[int], begins_word: Tensor, count: int, room: int = MAX_PIECES
) -> list[Word]:
    """Return the `count` most probable words after a prefix, most probable first.

    A word ends where the next token begins another word or ends the sentence, so its probability includes that of
    ending there. The search keeps a beam of unfinished words. Words with unknown characters are left out.

    Args:
        scorer: scores the next tokens of one sentence.
        prefix: the tokens of the translation so far.
        begins_word: (V,) whether a token begins a word.
        count: the number of words to return.
        room: the number of tokens that the scorer can read from the prefix's last one on.
    """
    begins, goes_on, ends = begins_word.clone(), ~begins_word, begins_word.clone()
    begins[[UNK, PAD, BOS, EOS]] = goes_on[[UNK, PAD, BOS, EOS]] = False
    ends[EOS] = True
    *before, tokens = torch.tensor([BOS, *prefix]).split(1)
    parents = torch.tensor([0])
    for token in before:
        scorer(token, parents)
    finished: list[Word] = []
    open_words = [Word([], 0.0)]
    for length in range(min(MAX_PIECES, room)):
        totals = torch.tensor([word.log_probability for word in open_words])[:, None]
        extended = totals + scorer(tokens, parents).float().cpu().log_softmax(-1)
        if length:
            ended = extended.masked_fill(~ends, NEVER).logsumexp(-1).tolist()
            finished += [Word(word.tokens, end) for word, end in zip(open_words, ended, strict=True)]
            finished = sorted(finished, key=lambda word: -word.log_probability)[:count]
        allowed = goes_on if length else begins
        best, places = (
            extended.masked_fill(~allowed, NEVER).flatten().topk(min(ROWS_PER_WORD * count, extended.numel()))
        )
        # a longer word is never more probable than its beginning
        keep = best > (finished[-1].log_probability if len(finished) == count else NEVER)
        if not bool(keep.any()):
            break
        parents, tokens = places[keep] // extended.shape[1], places[keep] % extended.shape[1]
        rows = zip(parents.tolist(), tokens.tolist(), best[keep].tolist(), strict=True)
        open_words = [Word([*open_words[parent].tokens, token], total) for parent, token, total in rows]
    return finished
