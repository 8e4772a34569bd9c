"""Beam search (section 6.1 of the paper), for anything that scores the next token given some prefixes.

Shapes: B sentences in all, S sentences still searched, K hypotheses of each that are still open,
R = S * K rows, V words, C candidates, N best hypotheses to give.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.text.special import BOS, EOS, PAD

NextTokenScorer = Callable[[Tensor, Tensor], Tensor]
"""`step(tokens, parents)` scores the next token of each row: (R,), (R,) to (R, V).

Row r goes on from row `parents[r]` of the call before with the token `tokens[r]`. In the first call the
rows are the sentences, `parents` counts them and every token is BOS. So choosing among hypotheses,
widening to a beam and leaving finished sentences out are one thing. The rows of a sentence lie
together, and each sentence has the same number. Scores are log-probabilities up to a constant of
each row: logits will do.
"""

NEVER = -math.inf
CHUNK = 64
"""Scores that are looked at together for the highest."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation of a sentence."""

    tokens: list[int]
    """Its word pieces, without BOS and EOS."""
    score: float
    """What hypotheses are ranked by: the log-probability divided by the length penalty."""
    log_probability: float
    """Sum of the log-probabilities of its tokens, EOS included."""


def length_penalty(length: int, alpha: float) -> float:
    """GNMT's length penalty, ((5 + n) / 6)^alpha, where n counts the tokens with the EOS."""
    return float(((5 + length) / 6) ** alpha)


def ensemble_scorers(steps: Sequence[NextTokenScorer]) -> NextTokenScorer:
    """Several models as one: the mean of their probabilities."""
    if len(steps) == 1:
        return steps[0]

    def step(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.stack([member(tokens, parents).log_softmax(-1) for member in steps])
        return scores.logsumexp(0) - math.log(len(steps))

    return step


def force_prefixes(step: NextTokenScorer, prefixes: Sequence[Sequence[int]], device: torch.device) -> NextTokenScorer:
    """The same scorer, but as long as its prefix lasts, a sentence can only go on with that: it counts as certain."""
    longest = max(map(len, prefixes))
    table = torch.tensor([[*prefix, *[PAD] * (longest - len(prefix))] for prefix in prefixes], device=device)
    owners = torch.arange(len(prefixes), device=device)
    length = 0

    def forced(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal owners, length
        scores = step(tokens, parents)
        if length < longest:
            owners = owners[parents]
            wanted = table[owners, length][:, None]
            others = torch.arange(scores.shape[1], device=device) != wanted
            scores = scores.masked_fill(others & (wanted != PAD), NEVER)
            length += 1
        return scores

    return forced


def beam_search(
    step: NextTokenScorer,
    max_lengths: Tensor,
    *,
    beam: int,
    alpha: float,
    nbest: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    stop_early: bool = True,
) -> list[list[Hypothesis]]:
    """Search for the best hypotheses of each sentence; the best comes first.

    Of all continuations of a sentence's open hypotheses, those among the `beam` most probable that end
    with EOS are finished, and the `beam` most probable others stay open. A sentence is done when
    `beam` hypotheses are finished, so that a beam of 1 is greedy search, or when no open hypothesis can
    still overtake the nbest-th finished one. `stop_early=False` leaves out that last test, which
    changes the time and never the result.

    Args:
        step: what scores the next token, see `Step`.
        max_lengths: (B,) most tokens of each sentence's translation, at least 1; the last of them can only be EOS.
        beam: open hypotheses of a sentence.
        alpha: exponent of the length penalty, at least 0.
        nbest: hypotheses to give, at most `beam`. There are fewer where the search finds no more.
        prefixes: tokens that each sentence's hypotheses begin with.
        stop_early: stop a sentence once its result is certain.
    """
    forced = force_prefixes(step, prefixes, max_lengths.device) if prefixes and any(prefixes) else step
    search = _Search(max_lengths, beam, alpha, nbest)
    tokens = torch.full_like(max_lengths, BOS)
    parents = torch.arange(len(max_lengths), device=max_lengths.device)
    while len(parents):
        tokens, parents = search.extend(forced(tokens, parents), stop_early)
    return search.hypotheses()


class _Search:
    """The open hypotheses of the sentences still searched, and the finished ones of all."""

    def __init__(self, max_lengths: Tensor, beam: int, alpha: float, nbest: int) -> None:
        count, device = len(max_lengths), max_lengths.device
        self.beam = beam
        self.length = 0
        limits = max_lengths.tolist()
        self.soonest = min(limits, default=0)  # no sentence reaches its limit before
        self.penalties = torch.tensor(
            [length_penalty(n, alpha) for n in range(max(limits, default=0) + 1)], device=device
        )
        # Of the S sentences still searched:
        self.sentences = torch.arange(count, device=device)  # (S,) which of the B they are
        self.limits = max_lengths  # (S,)
        self.open = torch.zeros(count, 1, device=device)  # (S, K) log-probabilities, best first
        # The tokens of each call's rows and where they came from: enough to read any hypothesis back.
        self.history: list[tuple[Tensor, Tensor]] = []
        # Of all B sentences the finished hypotheses: how many, and the best of them, best first.
        self.any_finished = False
        self.finished = torch.zeros_like(max_lengths)  # (B,)
        self.scores = torch.full((count, nbest), NEVER, device=device)  # (B, N)
        self.log_probabilities = self.scores.clone()  # (B, N)
        self.ends = torch.zeros(count, nbest, 2, dtype=torch.int64, device=device)  # (B, N, 2) length, last row

    def extend(self, scores: Tensor, stop_early: bool) -> tuple[Tensor, Tensor]:
        """Take the scores (R, V) of the next token; give the tokens and parents of the next call's rows."""
        self.length += 1
        totals, tokens, rows = self._candidates(scores)
        ends = tokens == EOS
        if ends.any():
            if ends[:, : self.beam].any():
                self._finish(totals.where(ends, NEVER)[:, : self.beam], rows[:, : self.beam])
            # Each open hypothesis ends in one way only, so of twice as many candidates as the beam enough go on.
            totals, order = totals.where(~ends, NEVER).sort(dim=1, descending=True, stable=True)
            tokens, rows = tokens.gather(1, order), rows.gather(1, order)
        self.open, tokens, rows = totals[:, : self.beam], tokens[:, : self.beam], rows[:, : self.beam]
        done = self._done(stop_early)
        if done.any():
            kept = _without(done)
            self.open, self.limits, self.sentences = self.open[kept], self.limits[kept], self.sentences[kept]
            tokens, rows = tokens[kept], rows[kept]
        self.history.append((tokens.flatten(), rows.flatten()))
        return self.history[-1]

    def _candidates(self, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of each sentence (S, C), best first: log-probability, token, row they extend."""
        count, width = self.open.shape
        log_probabilities = scores.log_softmax(1, dtype=torch.float32)
        log_probabilities[:, PAD] = NEVER
        log_probabilities[:, BOS] = NEVER
        if self.length >= self.soonest:
            full = (self.limits == self.length).repeat_interleave(width)
            others = torch.arange(scores.shape[1], device=scores.device) != EOS
            log_probabilities.masked_fill_(full[:, None] & others, NEVER)
        # A beam takes at most `beam` tokens besides EOS.
        log_probabilities, tokens = _top(log_probabilities, self.beam + 1)
        totals = (log_probabilities.view(count, width, -1) + self.open[:, :, None]).flatten(1)
        totals, order = totals.topk(min(2 * self.beam, totals.shape[1]), dim=1)
        first_rows = torch.arange(0, count * width, width, device=order.device)[:, None]
        return totals, tokens.view(count, -1).gather(1, order), first_rows + order // tokens.shape[1]

    def _finish(self, totals: Tensor, rows: Tensor) -> None:
        """Enter the candidates that end here, given their log-probabilities (S, K); -inf where one does not end."""
        ends = torch.stack([torch.full_like(rows, self.length), rows], dim=-1)
        here, nbest = self.sentences, self.scores.shape[1]
        self.any_finished = True
        self.finished[here] += (totals > NEVER).sum(1)
        scores = torch.cat([self.scores[here], totals / self.penalties[self.length]], 1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, :nbest]
        self.scores[here] = scores[:, :nbest]
        self.log_probabilities[here] = torch.cat([self.log_probabilities[here], totals], 1).gather(1, order)
        self.ends[here] = torch.cat([self.ends[here], ends], 1).gather(1, order[..., None].expand(-1, -1, 2))

    def _done(self, stop_early: bool) -> Tensor:
        """Which sentences (S,) need no further search."""
        best = self.open[:, 0]
        done = best == NEVER
        if self.length >= self.soonest:
            done |= self.limits <= self.length
        if self.any_finished:
            done |= self.finished[self.sentences] >= self.beam
            if stop_early:
                # Log-probabilities only fall, and the penalty only grows, up to that of the longest translation.
                done |= self.scores[self.sentences, -1] >= best / self.penalties[self.limits]
        return done

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The best finished hypotheses of all sentences."""
        history = [(tokens.tolist(), rows.tolist()) for tokens, rows in self.history]
        found = zip(self.scores.tolist(), self.log_probabilities.tolist(), self.ends.tolist(), strict=True)
        return [
            [
                Hypothesis(_read_back(history[: length - 1], row), score, log_probability)
                for score, log_probability, (length, row) in zip(*sentence, strict=True)
                if score > NEVER
            ]
            for sentence in found
        ]


def _without(done: Tensor) -> Tensor:
    """The sentences that are not done. The last take the places of those that are, so that few have to move."""
    kept = (~done).nonzero().squeeze(1)
    places = torch.arange(len(kept), device=done.device)
    places[done[: len(kept)]] = kept[kept >= len(kept)]
    return places


def _top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest of each row (R, V), as `topk` gives them; there may be fewer.

    They lie in those chunks of the row whose own highest are the highest. To find these takes one fast
    pass, and what is left to sort is little: topk over whole rows takes twice as long or more.
    """
    width = scores.shape[1]
    chunks = width // CHUNK
    if chunks <= count:
        return scores.topk(min(count, width), dim=1)
    within = scores[:, : chunks * CHUNK].unflatten(1, (chunks, CHUNK)).amax(2).topk(count, dim=1).indices
    places = (within[:, :, None] * CHUNK + torch.arange(CHUNK, device=scores.device)).flatten(1)
    rest = torch.arange(chunks * CHUNK, width, device=scores.device).expand(len(scores), -1)
    places = torch.cat([places, rest], 1)
    highest, order = scores.gather(1, places).topk(count, dim=1)
    return highest, places.gather(1, order)


def _read_back(history: list[tuple[list[int], list[int]]], row: int) -> list[int]:
    """The tokens on the way to a row, given each call's tokens and the rows they went on from."""
    tokens = []
    for call_tokens, call_rows in reversed(history):
        tokens.append(call_tokens[row])
        row = call_rows[row]
    return tokens[::-1]
