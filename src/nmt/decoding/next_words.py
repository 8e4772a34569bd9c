"""The words that are likely to come next in a translation."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.text.special import BOS, EOS, PAD

MAX_PIECES = 16
"""The longest word, in word pieces."""
ROWS_PER_WORD = 4
"""Unfinished words that are kept open for each word that is wanted."""


class Word(NamedTuple):
    """The tokens of a word, and the log-probability that it comes next, whole."""

    tokens: list[int]
    log_probability: float


def next_words(scorer: NextTokenScorer, prefix: Sequence[int], begins_word: Tensor, count: int) -> list[Word]:
    """Return the `count` most probable words after a prefix, most probable first.

    A word ends where the next token begins another word or ends the sentence, so its probability includes that of
    ending there. The search keeps a beam of unfinished words.

    Args:
        scorer: scores the next tokens of one sentence.
        prefix: the tokens of the translation so far.
        begins_word: (V,) whether a token begins a word.
        count: the number of words to return.
    """
    device, row = begins_word.device, torch.zeros(1, dtype=torch.int64, device=begins_word.device)
    scores = torch.empty(0)
    for token in (BOS, *prefix):
        scores = scorer(torch.tensor([token], device=device), row)
    special = torch.zeros_like(begins_word)
    special[[PAD, BOS, EOS]] = True
    finished: list[Word] = []
    open_words = [Word([], 0.0)]
    for length in range(MAX_PIECES):
        log_probabilities = scores.float().log_softmax(-1)
        totals = torch.tensor([word.log_probability for word in open_words], device=device)[:, None]
        if length:
            ended = (totals + log_probabilities.masked_fill(~(begins_word | special), NEVER)).logsumexp(-1).tolist()
            finished += [word._replace(log_probability=end) for word, end in zip(open_words, ended, strict=True)]
        allowed = ~begins_word if length else begins_word
        extended = (totals + log_probabilities).masked_fill(~(allowed & ~special), NEVER)
        best, places = extended.flatten().topk(min(ROWS_PER_WORD * count, extended.numel()))
        finished = sorted(finished, key=lambda word: -word.log_probability)[:count]
        worst = finished[-1].log_probability if len(finished) == count else NEVER
        keep = best > worst  # a longer word is never more probable than its beginning
        if not bool(keep.any()):
            break
        parents, tokens = places[keep] // extended.shape[1], places[keep] % extended.shape[1]
        rows = zip(parents.tolist(), tokens.tolist(), best[keep].tolist(), strict=True)
        open_words = [Word([*open_words[parent].tokens, token], total) for parent, token, total in rows]
        scores = scorer(tokens, parents)
    return finished
