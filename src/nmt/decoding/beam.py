"""Beam search (section 6.1 of the paper), for anything that scores the next token of given prefixes.

Shapes: B sentences in the batch, S sentences still being searched, K open hypotheses per sentence, R = S * K rows,
V tokens in the vocabulary, C candidates per sentence, N best hypotheses to return per sentence.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nmt.model.kernels.c.continuations import choose_continuations, chooses_in_c
from nmt.text.special import BOS, EOS, PAD

NextTokenScorer = Callable[[Tensor, Tensor], Tensor]
"""`scorer(tokens, parents)` scores the next token of each row: (R,), (R,) to (R, V).

Row r extends row `parents[r]` of the previous call by the token `tokens[r]`. In the first call there is one row per
sentence, `parents` is 0, 1, 2, ... and every token is BOS. So `parents` expresses all changes of the batch: reordering
hypotheses, widening to a beam, dropping finished sentences. The rows of a sentence are adjacent, and every sentence has
the same number of rows. Scores are log-probabilities up to a constant per row, so logits are fine.
"""

Candidates = tuple[Tensor, Tensor, Tensor]
"""Continuations of the hypotheses of each sentence, in the order in which they are kept: log-probabilities, tokens and
the rows that they continue, each (S, C)."""
Choose = Callable[[Tensor, Tensor], Candidates]
"""`choose(log_probabilities, open)` chooses at least `beam` continuations of each sentence that do not end with EOS, if
there are as many, given the log-probabilities (R, V) of the next tokens and those of the open hypotheses (S, K)."""

NEVER = -math.inf
"""The log-probability of tokens and hypotheses that must not be chosen."""
CHUNK_SCORES = 64
"""Scores per chunk; `top` takes the maximum of each chunk of a row first."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation of a sentence."""

    tokens: list[int]
    """Its tokens, without BOS and EOS."""
    score: float
    """The log-probability divided by the length penalty; hypotheses are ranked by it."""
    log_probability: float
    """Sum of the log-probabilities of its tokens, EOS included."""


def length_penalty(length: int, alpha: float) -> float:
    """Return GNMT's length penalty, ((5 + n) / 6)^alpha, for n tokens including EOS."""
    return float(((5 + length) / 6) ** alpha)


def ensemble_scorers(scorers: Sequence[NextTokenScorer]) -> NextTokenScorer:
    """Return a scorer that averages the probabilities of several scorers, in float32 like the sums of the search."""
    if len(scorers) == 1:
        return scorers[0]

    def average(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.stack([scorer(tokens, parents).log_softmax(-1, dtype=torch.float32) for scorer in scorers])
        return scores.logsumexp(0) - math.log(len(scorers))

    return average


def beam_search(
    scorer: NextTokenScorer,
    max_lengths: Tensor,
    *,
    beam: int,
    alpha: float,
    nbest: int = 1,
    stop_early: bool = True,
    choose: Choose | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, best first.

    Each step extends every open hypothesis of a sentence by every token. Of these continuations, the ones that end with
    EOS among the `beam` most probable are finished; the `beam` most probable others stay open. A sentence is done when
    `beam` hypotheses are finished and no open one would be among the `nbest` best if it ended here, so a beam of 1 is
    greedy search. It is also done when no open hypothesis can still overtake the nbest-th finished one.

    Args:
        scorer: scores the next tokens.
        max_lengths: (B,) longest translation of each sentence, at least 1; its last token can only be EOS.
        beam: open hypotheses per sentence.
        alpha: exponent of the length penalty, at least 0.
        nbest: hypotheses to return, at most `beam`. There are fewer if the search finds fewer.
        stop_early: stop a sentence once its result is certain; this changes the time, never the result.
        choose: how to choose continuations, if not the most probable ones.
    """
    search = Search(max_lengths, beam, alpha, nbest, choose)
    search.run(scorer, stop_early=stop_early)
    return search.hypotheses()


def most_probable(log_probabilities: Tensor, open_: Tensor, beam: int) -> Candidates:
    """Choose the 2 * `beam` most probable continuations of each sentence; see `Choose`.

    They are among the beam + 1 most probable tokens of each row: `beam` that may stay open, and perhaps EOS.
    """
    highest, tokens = top(log_probabilities, beam + 1)
    count, width = open_.shape
    totals = (highest.view(count, width, -1) + open_[:, :, None]).flatten(1)
    totals, order = totals.topk(min(2 * beam, totals.shape[1]), dim=1)
    first_rows = width * torch.arange(count, device=order.device)[:, None]
    return totals, tokens.view(count, -1).gather(1, order), first_rows + order // tokens.shape[1]


class Search:
    """The open hypotheses of the sentences still being searched, and the finished hypotheses of all sentences."""

    def __init__(self, max_lengths: Tensor, beam: int, alpha: float, nbest: int, choose: Choose | None = None) -> None:
        count, device = len(max_lengths), max_lengths.device
        self.beam = beam
        self.choose = choose or partial(most_probable, beam=beam)
        self.takes_best = choose is None
        """Whether the most probable continuations are chosen, which an operation in C may then find."""
        self.length = 0
        limits = max_lengths.tolist()
        self.shortest_limit = min(limits, default=0)
        self.penalties = torch.tensor(
            [length_penalty(n, alpha) for n in range(max(limits, default=0) + 1)], device=device
        )
        # The S sentences still being searched:
        self.sentences = torch.arange(count, device=device)  # (S,) their indices among the B
        self.limits = max_lengths  # (S,)
        self.open = torch.zeros(count, 1, device=device)  # (S, K) log-probabilities, in the order chosen
        # The tokens and parents of each step's rows, from which any hypothesis can be read back.
        self.history: list[tuple[Tensor, Tensor]] = []
        # The finished hypotheses of all B sentences: their number, and the best of them, best first.
        self.any_finished = False
        self.finished = torch.zeros_like(max_lengths)  # (B,)
        self.scores = torch.full((count, nbest), NEVER, device=device)  # (B, N)
        self.log_probabilities = self.scores.clone()  # (B, N)
        self.ends = torch.zeros(count, nbest, 2, dtype=torch.int64, device=device)  # (B, N, 2) length and last row

    def run(self, scorer: NextTokenScorer, *, stop_early: bool) -> None:
        """Search until every sentence is done."""
        tokens = torch.full_like(self.sentences, BOS)
        parents = self.sentences
        while len(parents):
            tokens, parents = self.extend(scorer(tokens, parents), stop_early)

    def extend(self, scores: Tensor, stop_early: bool) -> tuple[Tensor, Tensor]:
        """Extend the open hypotheses, given the scores (R, V) of their next tokens.

        Returns:
            The tokens and parents with which to call the scorer next.
        """
        self.length += 1
        totals, tokens, parents = self._continuations(scores)
        is_end = tokens == EOS
        if is_end.any():
            if is_end[:, : self.beam].any():
                self._finish(totals.where(is_end, NEVER)[:, : self.beam], parents[:, : self.beam])
            # Each open hypothesis has one continuation by EOS, so at least `beam` of 2 * `beam` candidates go on.
            order = is_end.to(torch.uint8).argsort(dim=1, stable=True)
            open_totals = totals.where(~is_end, NEVER)
            totals, tokens, parents = (each.gather(1, order) for each in (open_totals, tokens, parents))
        self.open, tokens, parents = (each[:, : self.beam] for each in (totals, tokens, parents))
        done = self._done(stop_early)
        if done.any():
            kept = remaining(done)
            self.open, self.limits, self.sentences = self.open[kept], self.limits[kept], self.sentences[kept]
            tokens, parents = tokens[kept], parents[kept]
        self.history.append((tokens.flatten(), parents.flatten()))
        return self.history[-1]

    def _continuations(self, scores: Tensor) -> Candidates:
        """Choose continuations of each sentence, given the scores (R, V) of the next tokens."""
        is_limited = self.length >= self.shortest_limit or scores.shape[1] <= self.beam
        if is_limited or not self.takes_best or not chooses_in_c(scores):
            return self.choose(self._log_probabilities(scores), self.open)
        count = self.beam + 1
        best = min(2 * self.beam, self.open.shape[1] * count)
        return choose_continuations(scores, self.open, count, best, never=(PAD, BOS))

    def _log_probabilities(self, scores: Tensor) -> Tensor:
        """Return the log-probabilities (R, V) of the next tokens; at its limit, a sentence can only end."""
        log_probabilities = scores.log_softmax(1, dtype=torch.float32)
        log_probabilities[:, PAD] = NEVER
        log_probabilities[:, BOS] = NEVER
        if self.length >= self.shortest_limit:
            at_limit = (self.limits == self.length).repeat_interleave(self.open.shape[1])
            others = torch.arange(scores.shape[1], device=scores.device) != EOS
            log_probabilities.masked_fill_(at_limit[:, None] & others, NEVER)
        return log_probabilities

    def _finish(self, totals: Tensor, parents: Tensor) -> None:
        """Add the candidates that end with EOS, given log-probabilities (S, K) that are -inf for the others."""
        ends = torch.stack([torch.full_like(parents, self.length), parents], dim=-1)
        sentences, nbest = self.sentences, self.scores.shape[1]
        self.any_finished = True
        self.finished[sentences] += (totals > NEVER).sum(1)
        scores = torch.cat([self.scores[sentences], totals / self.penalties[self.length]], 1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, :nbest]
        self.scores[sentences] = scores[:, :nbest]
        self.log_probabilities[sentences] = torch.cat([self.log_probabilities[sentences], totals], 1).gather(1, order)
        self.ends[sentences] = torch.cat([self.ends[sentences], ends], 1).gather(1, order[..., None].expand(-1, -1, 2))

    def _done(self, stop_early: bool) -> Tensor:
        """Return which sentences (S,) need no further search."""
        best = self.open.amax(1)
        done = (best == NEVER) | (self.limits <= self.length)
        if self.any_finished:
            last = self.scores[self.sentences, -1]
            # The improbable endings of a confident model may fill the beam long before its translation ends.
            done |= (self.finished[self.sentences] >= self.beam) & (last >= best / self.penalties[self.length])
            if stop_early:
                # Log-probabilities only fall, and penalties only grow up to that of the longest translation, so no
                # open hypothesis can get a higher score than this.
                done |= last >= best / self.penalties[self.limits]
        return done

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the best finished hypotheses of all sentences."""
        history = [(tokens.tolist(), parents.tolist()) for tokens, parents in self.history]
        found = zip(self.scores.tolist(), self.log_probabilities.tolist(), self.ends.tolist(), strict=True)
        return [
            [
                Hypothesis(_read_back(history[: length - 1], row), score, log_probability)
                for score, log_probability, (length, row) in zip(*sentence, strict=True)
                if score > NEVER
            ]
            for sentence in found
        ]


def remaining(done: Tensor) -> Tensor:
    """Return the indices of the items (N,) that are not done. The last of them fill the gaps, so that few are moved."""
    kept = (~done).nonzero().squeeze(1)
    places = torch.arange(len(kept), device=done.device)
    places[done[: len(kept)]] = kept[kept >= len(kept)]
    return places


def top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what `scores.topk(count, dim=1)` returns for rows (R, V), but at most V scores per row.

    The `count` highest scores of a row lie in the `count` chunks whose maxima are the highest. Finding these chunks
    takes one fast pass, and few scores remain to be sorted: `topk` over whole rows takes at least twice as long.
    """
    width = scores.shape[1]
    chunks = width // CHUNK_SCORES
    if chunks <= count:
        return scores.topk(min(count, width), dim=1)
    within = scores[:, : chunks * CHUNK_SCORES].unflatten(1, (chunks, CHUNK_SCORES)).amax(2).topk(count, dim=1).indices
    places = (within[:, :, None] * CHUNK_SCORES + torch.arange(CHUNK_SCORES, device=scores.device)).flatten(1)
    rest = torch.arange(chunks * CHUNK_SCORES, width, device=scores.device).expand(len(scores), -1)
    places = torch.cat([places, rest], 1)
    highest, order = scores.gather(1, places).topk(count, dim=1)
    return highest, places.gather(1, order)


def _read_back(history: list[tuple[list[int], list[int]]], row: int) -> list[int]:
    """Return the tokens that lead to a row of the last step, given each step's tokens and parents."""
    tokens = []
    for step_tokens, step_parents in reversed(history):
        tokens.append(step_tokens[row])
        row = step_parents[row]
    return tokens[::-1]
