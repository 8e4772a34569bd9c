"""Force the beginnings of hypotheses, for any next-token scorer.

Whole words are forced as the tokens into which the tokenizer splits them. The last word may be the beginning of a
longer one, which would be split at other places, so any tokens that spell it are searched, and any that spell more.

Shapes: B sentences in the batch, R rows as in `NextTokenScorer`, V tokens in the vocabulary.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.text.special import BOS, EOS, PAD, UNK

LAST_CHARACTER = "\U0010ffff"


def is_byte(piece: str) -> bool:
    """Return whether a token stands for a single byte of a character that the vocabulary lacks."""
    return re.fullmatch(r"<0x[0-9A-F]{2}>", piece) is not None


class Spellings:
    """The tokens of a vocabulary by their spelling."""

    def __init__(self, vocabulary: Sequence[str], device: torch.device) -> None:
        """Take the tokens in the order of their ids."""
        special = (UNK, PAD, BOS, EOS)
        self._size, self._device = len(vocabulary), device
        self._ids = {piece: token for token, piece in enumerate(vocabulary) if token not in special}
        self._sorted = sorted(piece for piece in self._ids if not is_byte(piece))
        self.lengths = torch.tensor([len(piece) for piece in vocabulary], device=device)
        """(V,) the number of characters of each token."""
        self.after_word = torch.tensor(
            [token in special or not _continues_word(piece) for token, piece in enumerate(vocabulary)], device=device
        )
        """(V,) whether a token can follow a whole word: it begins with a space or with punctuation, or is EOS."""

    def spelling(self, text: str) -> Tensor:
        """Return which tokens (V,) begin a text or begin with it."""
        shorter = [self._ids[text[:end]] for end in range(1, len(text)) if text[:end] in self._ids]
        first, last = bisect_left(self._sorted, text), bisect_left(self._sorted, text + LAST_CHARACTER)
        allowed = torch.zeros(self._size, dtype=torch.bool, device=self._device)
        allowed[shorter + [self._ids[piece] for piece in self._sorted[first:last]]] = True
        return allowed


@lru_cache(maxsize=4)  # a server searches for every request anew; a vocabulary of 37,000 takes 60 ms
def spellings_of(vocabulary: tuple[str, ...], device: torch.device) -> Spellings:
    """Return the spellings of a vocabulary; those of the vocabularies used last are remembered."""
    return Spellings(vocabulary, device)


def _continues_word(piece: str) -> bool:
    return is_byte(piece) or unicodedata.category(piece[0])[0] in "LMN"


def force_prefixes(scorer: NextTokenScorer, prefixes: Sequence[Sequence[int]], device: torch.device) -> NextTokenScorer:
    """Return a scorer under which every sentence begins with its prefix, whose tokens have probability 1."""
    longest = max(map(len, prefixes))
    table = torch.tensor([[*prefix, *[PAD] * (longest - len(prefix))] for prefix in prefixes], device=device)
    sentences = torch.arange(len(prefixes), device=device)  # (R,) the sentence of each row
    length = 0

    def forced(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal sentences, length
        scores = scorer(tokens, parents)
        if length < longest:
            sentences = sentences[parents]
            wanted = table[sentences, length][:, None]
            only_wanted = torch.full_like(scores, NEVER).scatter(1, wanted, 0.0)
            scores = scores.where(wanted == PAD, only_wanted)
            length += 1
        return scores

    return forced


def finish_words(
    scorer: NextTokenScorer, spellings: Spellings, starts: Sequence[int], words: Sequence[str], ended: Sequence[bool]
) -> NextTokenScorer:
    """Return a scorer under which hypotheses go on with a word, or do not go on with the word before.

    The other tokens keep their probabilities, as in `forbid`.

    Args:
        scorer: scores the next tokens.
        spellings: the vocabulary.
        starts: the number of tokens of each sentence before this restriction.
        words: the text with which each sentence goes on after them; "" for any.
        ended: whether the word before has ended; such a sentence has no word to go on with.
    """
    device = spellings.lengths.device
    masks = [
        [spellings.spelling(word[place:]) for place in range(len(word))] + [spellings.after_word] * end
        for word, end in zip(words, ended, strict=True)
    ]
    # One row of `allowed` per number of characters that are spelled, for each sentence; the first row allows any token.
    allowed = torch.stack([torch.ones_like(spellings.after_word), *(mask for rows in masks for mask in rows)])
    lengths = torch.tensor([len(rows) for rows in masks], device=device)  # (R,) characters to spell
    first_rows = 1 + lengths.cumsum(0) - lengths  # (R,)
    spelled = -1 - torch.tensor(starts, device=device)  # (R,) characters; below 0, tokens until the word, and BOS
    finished = False

    def finishing(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal lengths, first_rows, spelled, finished
        scores = scorer(tokens, parents)
        if finished:
            return scores
        lengths, first_rows, spelled = lengths[parents], first_rows[parents], spelled[parents]
        spelled = spelled + spellings.lengths[tokens].where(spelled >= 0, 1)
        finished = bool((spelled >= lengths).all())
        rows = (first_rows + spelled).where((spelled >= 0) & (spelled < lengths), 0)
        return forbid_all_but(scores, allowed[rows])

    return finishing


def forbid_all_but(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the scores (R, V) of the tokens that are allowed (R, V); PAD gets the probabilities of the others."""
    scores = scores.float()
    removed = scores.masked_fill(allowed, NEVER).logsumexp(1)
    scores = scores.masked_fill(~allowed, NEVER)
    scores[:, PAD] = torch.logaddexp(scores[:, PAD], removed)
    return scores
