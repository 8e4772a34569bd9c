"""Diverse beam search (Vijayakumar et al., 2018): groups of hypotheses that avoid the tokens of the groups before them.

A group is searched like a sentence, so each sentence stands `groups` times in the batch, one after the other. At each
step the groups of a sentence choose in turn, and a token that n hypotheses of earlier groups have just chosen loses
`diversity` * n. This changes what is chosen, not the scores of hypotheses.

Shapes: B copies of sentences, S of them still being searched, K open hypotheses per copy, R = S * K rows, V tokens in
the vocabulary, C candidates per copy.
"""

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, Candidates, Choose, Hypothesis, NextTokenScorer, Search
from nmt.text.special import EOS


def diverse_beam_search(
    scorer: NextTokenScorer,
    max_lengths: Tensor,
    *,
    beam: int,
    alpha: float,
    nbest: int,
    groups: int,
    diversity: float,
    choose: Choose | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of all groups of each sentence, best first; see `beam_search`.

    Args:
        scorer: scores the next tokens of the copies of the sentences.
        max_lengths: (B,) longest translation of each copy.
        beam: open hypotheses per group.
        alpha: exponent of the length penalty.
        nbest: hypotheses to return per sentence.
        groups: copies of each sentence.
        diversity: the log-probability that a token loses for each hypothesis that has just chosen it.
        choose: how a group chooses continuations, if not the most probable ones.
    """
    search = _DiverseSearch(max_lengths, beam, alpha, choose, groups, diversity)
    search.run(scorer, stop_early=False)  # a group that ends would change what the groups after it choose
    copies = search.hypotheses()
    return [_best(copies[first : first + groups], nbest) for first in range(0, len(copies), groups)]


class _DiverseSearch(Search):
    """A search in which the copies of a sentence choose in turn."""

    def __init__(
        self, max_lengths: Tensor, beam: int, alpha: float, choose: Choose | None, groups: int, diversity: float
    ) -> None:
        super().__init__(max_lengths, beam, alpha, beam, choose)
        self.groups, self.diversity, self.takes_best = groups, diversity, False

    def candidates(self, log_probabilities: Tensor) -> Candidates:
        """Choose continuations of each copy, avoiding the tokens of the copies before it."""
        rows = torch.arange(self.open.numel(), device=self.open.device).view(self.open.shape)
        sentences = self.sentences // self.groups
        chosen = log_probabilities.new_zeros(int(sentences.max()) + 1, log_probabilities.shape[1])
        own_places, found = [], []
        for group in range(self.groups):
            own = (self.sentences % self.groups == group).nonzero().squeeze(1)
            if not len(own):
                continue
            penalties = self.diversity * chosen[sentences[own]]  # (S', V)
            each_row = penalties.repeat_interleave(self.open.shape[1], 0)
            totals, tokens, parents = self.choose(
                log_probabilities[rows[own].flatten()] - each_row, self.open[own], rows[own].flatten()
            )
            goes_on = (tokens != EOS) & (totals > NEVER)
            kept = goes_on & (goes_on.cumsum(1) <= self.beam)
            chosen[sentences[own]] += torch.zeros_like(penalties).scatter_add(1, tokens, kept.to(penalties.dtype))
            own_places.append(own)
            found.append((totals + penalties.gather(1, tokens), tokens, parents))
        order = torch.cat(own_places).argsort()
        totals, tokens, parents = (torch.cat(each)[order] for each in zip(*found, strict=True))
        return totals, tokens, parents


def _best(copies: list[list[Hypothesis]], nbest: int) -> list[Hypothesis]:
    """Return the best different hypotheses of the copies of a sentence."""
    distinct = {tuple(each.tokens): each for hypotheses in copies for each in hypotheses}
    return sorted(distinct.values(), key=lambda each: -each.score)[:nbest]
