"""Beam search (section 6.1 of the paper), for anything that continues given prefixes.

Shapes: B sentences in the batch, S sentences still being searched, K open hypotheses per sentence, R = S * K rows,
V tokens in the vocabulary, C candidates per sentence.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.text.special import BOS, EOS, PAD

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

NextTokenScorer = Callable[[Tensor, Tensor], Tensor]
"""`scorer(tokens, parents)` scores the next token of each row: (R,), (R,) to (R, V).

Row r extends row `parents[r]` of the previous call by the token `tokens[r]`. In the first call there is one row per
sentence, `parents` is 0, 1, 2, ... and every token is BOS. So `parents` expresses all changes of the batch: reordering
hypotheses, widening to a beam, dropping finished sentences. The rows of a sentence are adjacent, and every sentence has
the same number of rows. Scores are log-probabilities up to a constant per row, so logits are fine. Tokens and parents
are on the CPU, or on the device of the scores if the search runs there (`search_on_device`).
"""

Candidates = tuple[Floats, Ints, Ints]
"""Continuations of the hypotheses of each sentence, in the order in which they are kept: log-probabilities, tokens and
the rows that they continue, each (S, C)."""
Continue = Callable[[Ints, Ints, Floats, Flags], Candidates]
"""`continue_(tokens, parents, open, must_end)` extends rows like a `NextTokenScorer`, and chooses among their
continuations: at least `beam` of each sentence that do not end with EOS, if there are as many, given the
log-probabilities (S, K) of the rows. Only EOS continues the sentences (S,) that must end."""
Choose = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""`choose(log_probabilities, open)` chooses the same from the log-probabilities (R, V) of all next tokens."""

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


class Ending(NamedTuple):
    """A finished hypothesis, whose tokens can be read back from the history of the search."""

    score: float
    log_probability: float
    length: int
    """Its tokens, EOS included."""
    row: int
    """The row of the last step that it continues."""


def length_penalty(length: int, alpha: float) -> float:
    """Return GNMT's length penalty, ((5 + n) / 6)^alpha, for n tokens including EOS."""
    return float(((5 + length) / 6) ** alpha)


def ensemble_scorers(scorers: Sequence[NextTokenScorer]) -> NextTokenScorer:
    """Return a scorer that averages the probabilities of several scorers, in float32 like the sums of the search."""
    if len(scorers) == 1:
        return scorers[0]

    def average(tokens: Tensor, parents: Tensor) -> Tensor:
        members = (scorer(tokens, parents).softmax(-1, dtype=torch.float32) for scorer in scorers)
        mean = reduce(torch.add, members).div_(len(scorers))
        return mean.clamp_(min=torch.finfo(mean.dtype).tiny).log_()  # zero would mean that a token is forbidden

    return average


def by_scores(scorer: NextTokenScorer, choose: Choose) -> Continue:
    """Return a `Continue` that chooses from the scores of all tokens."""

    def continue_(tokens: Ints, parents: Ints, open_: Floats, must_end: Flags) -> Candidates:
        log_probabilities = forbidding(
            scorer(torch.from_numpy(tokens), torch.from_numpy(parents)),
            torch.from_numpy(must_end.repeat(open_.shape[1])) if must_end.any() else None,
        )
        totals, next_tokens, rows = choose(log_probabilities, torch.from_numpy(open_))
        return totals.numpy(), next_tokens.numpy(), rows.numpy()

    return continue_


def forbidding(scores: Tensor, must_end: Tensor | None) -> Tensor:
    """Return the log-probabilities (R, V) of next tokens: only EOS may follow the rows (R,) that must end."""
    log_probabilities = scores.log_softmax(1, dtype=torch.float32)
    log_probabilities[:, PAD : BOS + 1] = NEVER  # neighbours: a list of both would be copied to the device
    if must_end is not None:
        others = torch.arange(scores.shape[1], device=scores.device) != EOS
        log_probabilities.masked_fill_(must_end[:, None] & others, NEVER)
    return log_probabilities


def most_probable(log_probabilities: Tensor, open_: Tensor, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """Choose the 2 * `beam` most probable continuations of each sentence; see `Choose`.

    They are among the beam + 1 most probable tokens of each row: `beam` that may stay open, and perhaps EOS.
    """
    highest, tokens = top(log_probabilities, beam + 1)
    count, width = open_.shape
    totals = (highest.view(count, width, -1) + open_[:, :, None]).flatten(1)
    totals, order = totals.topk(min(2 * beam, totals.shape[1]), dim=1)
    first_rows = width * torch.arange(count, device=order.device)[:, None]
    return totals, tokens.view(count, -1).gather(1, order), first_rows + order // tokens.shape[1]


def beam_search(
    continue_: Continue,
    max_lengths: Sequence[int],
    *,
    beam: int,
    alpha: float,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, best first.

    Each step extends every open hypothesis of a sentence by every token. Of these continuations, the ones that end with
    EOS among the `beam` most probable are finished; the `beam` most probable others stay open. A sentence is done when
    `beam` hypotheses are finished and no open one would be among the `nbest` best if it ended here, so a beam of 1 is
    greedy search. It is also done when no open hypothesis can still overtake the nbest-th finished one.

    Args:
        continue_: extends hypotheses.
        max_lengths: longest translation of each sentence, at least 1; its last token can only be EOS.
        beam: open hypotheses per sentence.
        alpha: exponent of the length penalty, at least 0.
        nbest: hypotheses to return, at most `beam`. There are fewer if the search finds fewer.
    """
    search = Search(max_lengths, beam, alpha, nbest)
    tokens, parents = np.full(len(max_lengths), BOS), np.arange(len(max_lengths))
    while len(parents):
        tokens, parents = search.extend(*continue_(tokens, parents, search.open, search.must_end))
    return search.hypotheses()


class Search:
    """The open hypotheses of the sentences still being searched, and the finished hypotheses of all sentences."""

    def __init__(self, max_lengths: Sequence[int], beam: int, alpha: float, nbest: int) -> None:
        self.beam, self.nbest = beam, nbest
        self.length = 0
        longest = max(max_lengths, default=0)
        self.penalties = np.array([length_penalty(n, alpha) for n in range(longest + 1)], np.float32)
        # The S sentences still being searched:
        self.sentences = np.arange(len(max_lengths))  # (S,) their indices among the B
        self.limits = np.array(max_lengths, np.int64)  # (S,)
        self.limit_penalties = self.penalties[self.limits]  # (S,)
        self.shortest_limit = min(max_lengths, default=0)
        self.open = np.zeros((len(max_lengths), 1), np.float32)  # (S, K) log-probabilities
        self.must_end = self.limits == 1  # (S,)
        # (S,) the score of the nbest-th finished hypothesis, and that of the same if `beam` hypotheses are finished:
        self.last, self.last_if_enough = np.full((2, len(max_lengths)), NEVER, np.float32)
        # The tokens and parents of each step's rows, from which any hypothesis can be read back.
        self.history: list[tuple[Ints, Ints]] = []
        self.any_finished = False
        self.finished: list[list[Ending]] = [[] for _ in max_lengths]  # of all B sentences, best first

    def extend(self, totals: Floats, tokens: Ints, parents: Ints) -> tuple[Ints, Ints]:
        """Extend the open hypotheses by the candidates (S, C).

        Returns:
            The tokens and parents with which to continue next.
        """
        self.length += 1
        is_end = tokens == EOS
        if is_end.any():
            self._finish(is_end[:, : self.beam], totals, parents)
            # Each open hypothesis has one continuation by EOS, so at least `beam` of 2 * `beam` candidates go on.
            order = is_end.argsort(1, kind="stable")[:, : self.beam]
            lines = np.arange(len(order))[:, None]
            totals = np.where(is_end, np.float32(NEVER), totals)[lines, order]
            tokens, parents = tokens[lines, order], parents[lines, order]
        self.open, tokens, parents = totals[:, : self.beam], tokens[:, : self.beam], parents[:, : self.beam]
        if self.any_finished or self.length >= self.shortest_limit:
            done = self._done()
            if done.any():
                kept = (~done).nonzero()[0]
                tokens, parents, self.open = tokens[kept], parents[kept], self.open[kept]
                self._keep(kept)
        self.must_end = self.limits == self.length + 1
        self.history.append((tokens.flatten(), parents.flatten()))
        return self.history[-1]

    def _finish(self, is_end: Flags, totals: Floats, parents: Ints) -> None:
        """Add the candidates (S, K) that end with EOS, and have a finite probability."""
        self.any_finished = True
        for line, place in zip(*is_end.nonzero(), strict=True):
            total = float(totals[line, place])
            if not total > NEVER:
                continue
            endings = self.finished[self.sentences[line]]
            score = total / float(self.penalties[self.length])
            endings.append(Ending(score, total, self.length, int(parents[line, place])))
            endings.sort(key=lambda ending: -ending.score)
            if len(endings) >= self.nbest:
                self.last[line] = endings[self.nbest - 1].score
                if len(endings) >= self.beam:
                    self.last_if_enough[line] = self.last[line]

    def _done(self) -> Flags:
        """Return which sentences (S,) need no further search."""
        best = self.open.max(1)
        # The improbable endings of a confident model may fill the beam long before its translation ends.
        done: Flags = self.last_if_enough >= best / self.penalties[self.length]
        # Log-probabilities only fall, and penalties only grow up to that of the longest translation, so no open
        # hypothesis can get a higher score than this.
        done |= self.last >= best / self.limit_penalties
        done |= (self.limits <= self.length) | (best == NEVER)
        return done

    def _keep(self, kept: Ints) -> None:
        """Drop all sentences but these from the search."""
        self.sentences, self.limits = self.sentences[kept], self.limits[kept]
        self.limit_penalties = self.limit_penalties[kept]
        self.last, self.last_if_enough = self.last[kept], self.last_if_enough[kept]

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the best finished hypotheses of all sentences."""
        return [
            [
                Hypothesis(self._read_back(ending), ending.score, ending.log_probability)
                for ending in endings[: self.nbest]
            ]
            for endings in self.finished
        ]

    def _read_back(self, ending: Ending) -> list[int]:
        """Return the tokens of a hypothesis, without EOS."""
        found, row = list[int](), ending.row
        for tokens, parents in self.history[ending.length - 2 :: -1] if ending.length > 1 else ():
            found.append(int(tokens[row]))
            row = parents[row]
        return found[::-1]


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
