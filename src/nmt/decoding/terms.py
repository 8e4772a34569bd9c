"""Search only translations in which certain terms stand, without dropping one (Post and Vilar, 2018).

A term is a sequence of tokens, the first of which begins a word; it stands in a hypothesis if its tokens do and the
next token does not continue its last word. Hypotheses that still need many tokens of their terms are less probable than
those that need few, or more, so they do not compete: the places in the beam are dealt out in turn to hypotheses that
need the same number of tokens.

Shapes: B sentences in the batch, S sentences still being searched, K open hypotheses per sentence, R = S * K rows,
V tokens in the vocabulary, T terms per sentence, L tokens of the longest term, M different tokens in the terms of a
sentence, C candidates per sentence.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.decoding.beam import NEVER, NextTokenScorer, top
from nmt.text.special import BOS, EOS, PAD, UNK


@lru_cache(maxsize=4)  # a server searches for every request anew
def tokens_after_word(vocabulary: tuple[str, ...], device: torch.device) -> Tensor:
    """Return whether each token (V,) can follow a whole word: it begins with a space or punctuation, or is EOS."""
    special = (UNK, PAD, BOS, EOS)
    return torch.tensor(
        [token in special or not _continues_word(piece) for token, piece in enumerate(vocabulary)], device=device
    )


def _continues_word(piece: str) -> bool:
    is_byte = re.fullmatch(r"<0x[0-9A-F]{2}>", piece) is not None  # one of a character that the vocabulary lacks
    return is_byte or unicodedata.category(piece[0])[0] in "LMN"


class RequiredTerms:
    """The terms that each row of a search still needs. Wraps a scorer to follow the rows, and chooses continuations."""

    def __init__(
        self, terms: Sequence[Sequence[Sequence[int]]], max_lengths: Tensor, after_word: Tensor, beam: int
    ) -> None:
        """Require the terms of each sentence.

        Args:
            terms: each sentence's terms, each at least one token long.
            max_lengths: (B,) longest hypothesis of each sentence, EOS included; there must be room for all terms.
            after_word: (V,) whether a token can follow a whole word.
            beam: open hypotheses per sentence.
        """
        device = max_lengths.device
        self.after_word, self.beam = after_word, beam
        most, longest = max(map(len, terms)), max(len(term) for each in terms for term in each)
        padded = [[[*term, *[PAD] * (longest - len(term))] for term in each] for each in terms]
        self.terms = torch.tensor(  # (R, T, L)
            [[*each, *[[PAD] * longest] * (most - len(each))] for each in padded], device=device
        )
        self.sizes = (self.terms != PAD).sum(2)  # (R, T)
        self.tokens = distinct_tokens(terms, device)  # (R, M)
        ascending = self.tokens.where(self.tokens != PAD, torch.iinfo(torch.int64).max)
        self.places = torch.searchsorted(ascending, self.terms.flatten(1)).view_as(self.terms)  # (R, T, L) in `tokens`
        self.counts = torch.arange(1, longest + 1, device=device)  # (L,) the number of tokens up to each one of a term
        self.room = max_lengths  # (R,) how many more tokens fit before EOS
        self.met = self.sizes == 0  # (R, T)
        self.complete = torch.zeros_like(self.met)  # (R, T) whether the last tokens are those of the term
        self.begun = _after_tokens(torch.zeros_like(self.terms, dtype=torch.bool), self.terms)  # (R, T, L)
        self.need = self.sizes.sum(1)  # (R,) how many tokens of terms must still be added

    def wrap(self, scorer: NextTokenScorer) -> NextTokenScorer:
        """Return a scorer that gives the same scores, and follows the rows."""

        def followed(tokens: Tensor, parents: Tensor) -> Tensor:
            self._extend(tokens.to(self.room.device), parents)
            return scorer(tokens, parents)

        return followed

    def choose(self, log_probabilities: Tensor, open_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Choose continuations of each sentence under which no term is dropped; see `Choose`."""
        count, width = open_.shape
        need = self._need_after()  # (R, V)
        forbidden = need > self.room[:, None] - 1
        forbidden[:, EOS] = need[:, EOS] > 0
        log_probabilities = log_probabilities.masked_fill(forbidden, NEVER)
        # The tokens that bring a hypothesis nearer to its terms are candidates even if they are improbable.
        special = self.tokens
        nearer = (need.gather(1, special) < self.need[:, None]) & (special != PAD)
        special_scores = log_probabilities.gather(1, special).masked_fill(~nearer, NEVER)
        others, tokens = top(log_probabilities.scatter(1, special.where(nearer, PAD), NEVER), self.beam + 1)
        tokens = torch.cat([tokens, special], 1)
        totals = torch.cat([others, special_scores], 1).view(count, width, -1) + open_[:, :, None]
        needs = need.gather(1, tokens).view(count, -1)
        parents = torch.arange(len(tokens), device=tokens.device)[:, None].expand_as(tokens).reshape(count, -1)
        totals, order = totals.flatten(1).sort(dim=1, descending=True, stable=True)
        needs = needs.gather(1, order)
        dealt = _deal(needs, totals > NEVER)[:, : 2 * self.beam]
        order = order.gather(1, dealt)
        return totals.gather(1, dealt), tokens.view(count, -1).gather(1, order), parents.gather(1, order)

    def _extend(self, tokens: Tensor, parents: Tensor) -> None:
        """Extend rows by a token each."""
        self.terms, self.sizes = self.terms[parents], self.sizes[parents]
        self.tokens, self.places = self.tokens[parents], self.places[parents]
        self.room = self.room[parents] - 1  # BOS takes the place of EOS
        added = self.begun[parents] & (self.terms == tokens[:, None, None])
        progress = (added * self.counts).amax(2)
        self.met = self.met[parents] | (self.complete[parents] & self.after_word[tokens][:, None])
        self.complete = (progress == self.sizes) & ~self.met
        self.begun = _after_tokens(added, self.terms)
        self.need = _need(progress[:, None], self.met[:, None], self.sizes)[:, 0]

    def _need_after(self) -> Tensor:
        """Return how many tokens of terms rows need after each token (R, V)."""
        sizes, met, complete, special = self.sizes, self.met, self.complete, self.tokens
        none = torch.zeros_like(sizes)[:, None]
        need_after_word = _need(none, (met | complete)[:, None], sizes)
        need = need_after_word.where(self.after_word, _need(none, met[:, None], sizes))
        met_after = met[:, None] | (complete[:, None] & self.after_word[special][:, :, None])
        return need.scatter(1, special, _need(self._progress(), met_after, sizes))

    def _progress(self) -> Tensor:
        """Return how many tokens of each term (R, M, T) end a row after each of the tokens in its terms is added."""
        counts = self.begun * self.counts
        progress = counts.new_zeros(len(counts), counts.shape[1], self.tokens.shape[1])
        return progress.scatter_reduce(2, self.places, counts, "amax").transpose(1, 2)


def _after_tokens(added: Tensor, terms: Tensor) -> Tensor:
    """Return which tokens of terms (R, T, L) would continue a row, given those that are its last one."""
    return F.pad(added[:, :, :-1], (1, 0), value=True) & (terms != PAD)


def _need(progress: Tensor, met: Tensor, sizes: Tensor) -> Tensor:
    """Return how many tokens (R, M) must still be added, given the progress in each term (R, M, T), their sizes (R, T).

    After a term is finished, or after the tokens of one that has begun, the others are added from their beginnings.
    """
    open_sizes = sizes[:, None].masked_fill(met, 0)
    return open_sizes.sum(2) - progress.masked_fill(met, 0).amax(2)


def _deal(needs: Tensor, possible: Tensor) -> Tensor:
    """Return the order (S, C) in which candidates are kept, given what they need (S, C), the most probable first.

    The best of each need come first, those that need fewest before the others; then the second best of each need.
    """
    by_need = needs.argsort(dim=1, stable=True)
    ascending = needs.gather(1, by_need)
    ranks_by_need = torch.arange(needs.shape[1], device=needs.device) - torch.searchsorted(ascending, ascending)
    ranks = torch.empty_like(needs).scatter_(1, by_need, ranks_by_need)
    order = (ranks * (needs.max() + 1) + needs).masked_fill(~possible, torch.iinfo(torch.int64).max)
    return order.argsort(dim=1, stable=True)


def distinct_tokens(terms: Sequence[Sequence[Sequence[int]]], device: torch.device) -> Tensor:
    """Return the different tokens (B, M) in the terms of each sentence, filled up with PAD."""
    distinct = [sorted({token for term in each for token in term}) for each in terms]
    most = max(map(len, distinct))
    return torch.tensor([[*each, *[PAD] * (most - len(each))] for each in distinct], dtype=torch.int64, device=device)
