"""Beam search whose state stays on a GPU, so that the host need not wait for the result of each step.

It finds what `nmt.decoding.beam.beam_search` does. Sentences that are done are searched on, without effect, until the
host asks which these are, and they are enough to shrink the batch. The shapes are those of `nmt.decoding.beam`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, Choose, Hypothesis, NextTokenScorer, forbidding, length_penalty
from nmt.text.special import BOS, EOS

STEPS_PER_READ = 8
"""Steps between two questions of the host: which sentences are done."""
KEPT_SHARE = 0.75
"""Sentences that are done leave the batch when at most this share goes on: each size of batch is recorded anew."""


def search_on_device(
    scorer: NextTokenScorer,
    choose: Choose,
    keep: Callable[[Tensor], object],
    max_lengths: Sequence[int],
    device: torch.device,
    *,
    beam: int,
    alpha: float,
    nbest: int,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, best first; see `beam_search`.

    Args:
        scorer: scores the next tokens; tokens and parents are on the device.
        choose: chooses continuations.
        keep: called before a step that continues only some of the sentences, with their indices among those so far.
        max_lengths: longest translation of each sentence.
        device: the device.
        beam: open hypotheses per sentence.
        alpha: exponent of the length penalty.
        nbest: hypotheses to return.
    """
    longest = max(max_lengths, default=0)
    penalties = torch.tensor([length_penalty(length, alpha) for length in range(longest + 1)]).to(
        device, non_blocking=True
    )
    limits, sentences = (
        torch.tensor(max_lengths).to(device, non_blocking=True),
        torch.arange(len(max_lengths), device=device),
    )
    open_, parents = torch.zeros(len(max_lengths), 1, device=device), sentences
    tokens, done = torch.full_like(parents, BOS), torch.zeros_like(parents, dtype=torch.bool)
    # (4, S, K) of the best finished hypotheses: score, log-probability, length and the row that they continue
    finished = torch.zeros(4, len(max_lengths), beam, device=device)
    finished[0] = NEVER
    results, history = torch.zeros_like(finished), list[Tensor]()
    for length in range(1, longest + 1):
        must_end = (limits == length)[:, None].expand_as(open_).flatten()
        totals, next_tokens, rows = choose(forbidding(scorer(tokens, parents), must_end), open_)
        is_end = next_tokens == EOS
        ends = is_end[:, :beam] & (totals[:, :beam] > NEVER) & ~done[:, None]
        ended = totals[:, :beam]
        scores = (ended / penalties[length]).masked_fill(~ends, NEVER)
        new = torch.stack([scores, ended, torch.full_like(ended, length), rows[:, :beam]])
        finished = torch.cat([finished, new], 2)
        order = finished[0].sort(dim=1, descending=True, stable=True).indices[:, :beam]
        finished = finished.gather(2, order.expand(4, -1, -1))
        order = is_end.long().argsort(dim=1, stable=True)[:, :beam]
        open_ = totals.masked_fill(is_end, NEVER).gather(1, order)
        best, last, enough = open_.amax(1), finished[0, :, nbest - 1], finished[0, :, beam - 1] > NEVER
        done |= (limits <= length) | (best == NEVER) | (last >= best / penalties[limits])
        done |= enough & (last >= best / penalties[length])
        tokens, parents = next_tokens.gather(1, order), rows.gather(1, order)
        if length % STEPS_PER_READ == 0 or length == longest:
            results[:, sentences] = finished
            goes_on = np.flatnonzero(~done.cpu().numpy())  # what the host waits for
            if not len(goes_on):
                break
            if len(goes_on) <= KEPT_SHARE * len(done):
                kept = torch.from_numpy(goes_on).to(device, non_blocking=True)
                keep(kept)
                tokens, parents, open_, done = tokens[kept], parents[kept], open_[kept], done[kept]
                limits, sentences, finished = limits[kept], sentences[kept], finished[:, kept]
        tokens, parents = tokens.flatten(), parents.flatten()
        history.append(torch.stack([tokens, parents]))
    steps = torch.cat(history, 1).cpu().split([each.shape[1] for each in history], 1) if history else ()
    return _read_back(results[:, :, :nbest].cpu(), steps)


def _read_back(finished: Tensor, steps: Sequence[Tensor]) -> list[list[Hypothesis]]:
    """Return the finished hypotheses (4, B, n), given the tokens and parents of the rows of each step."""
    found, history = [], [each.tolist() for each in steps]
    for sentence in finished.permute(1, 2, 0).tolist():
        hypotheses = []
        for score, total, length, row in sentence:
            tokens, place = list[int](), int(row)
            for step_tokens, step_parents in history[int(length) - 2 :: -1] if length > 1 else ():
                tokens.append(step_tokens[place])
                place = step_parents[place]
            if score > NEVER:
                hypotheses.append(Hypothesis(tokens[::-1], score, total))
        found.append(hypotheses)
    return found
