"""Control a search by wrapping its next-token scorer: each function returns a scorer that forbids or forces tokens.

Shapes: B sentences in the batch, R rows as in `NextTokenScorer`, V tokens in the vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import NEVER, NextTokenScorer
from nmt.decoding.constraints import Constraints
from nmt.decoding.terms import distinct_tokens
from nmt.text.special import PAD


def masked(
    scorer: NextTokenScorer, constraints: Sequence[Constraints], config: DecodingConfig, device: torch.device
) -> NextTokenScorer:
    """Return a scorer under which hypotheses are as the settings and the constraints ask; the same one if they do not.

    Terms are not among these constraints; see `nmt.decoding.terms`.
    """
    if config.no_repeat_ngram:
        exempt = distinct_tokens([each.terms for each in constraints], device)
        scorer = without_repeats(scorer, config.no_repeat_ngram, exempt)
    if any(each.beginning for each in constraints):
        scorer = force_prefixes(scorer, [each.beginning for each in constraints], device)
    return scorer


def forbid(scores: Tensor, tokens: Tensor) -> Tensor:
    """Return the scores (R, V) without these tokens (R, M), which differ within a row except for PAD.

    The other tokens keep their probabilities: PAD, which no search chooses, gets those of the forbidden tokens.
    """
    scores = scores.float()
    removed = torch.cat([scores[:, PAD:][:, :1], scores.gather(1, tokens).masked_fill(tokens == PAD, NEVER)], 1)
    scores = scores.scatter(1, tokens, NEVER)
    scores[:, PAD] = removed.logsumexp(1)
    return scores


def without_repeats(scorer: NextTokenScorer, size: int, exempt: Tensor) -> NextTokenScorer:
    """Return a scorer under which no sequence of `size` tokens stands twice in a hypothesis.

    Args:
        scorer: scores the next tokens.
        size: tokens per sequence.
        exempt: (B, M) tokens of each sentence that may end a repeated sequence, filled up with PAD.
    """
    history = torch.empty(len(exempt), 0, dtype=torch.int64, device=exempt.device)  # (R, t) the tokens of each row

    def new(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal history, exempt
        scores = scorer(tokens, parents)
        exempt = exempt[parents]
        history = torch.cat([history[parents], tokens.to(exempt.device)[:, None]], 1)
        repeating = _repeating(history[:, 1:], size)  # the first token is BOS
        return forbid(scores, _distinct(repeating, exempt))

    return new


def _repeating(history: Tensor, size: int) -> Tensor:
    """Return the tokens (R, t - size + 1) that would repeat a sequence of `size` of the tokens (R, t); else PAD."""
    count = max(0, history.shape[1] - size + 1)
    repeats = torch.ones(len(history), count, dtype=torch.bool, device=history.device)
    latest = history[:, history.shape[1] - size + 1 :] if count else history
    for place in range(size - 1 if count else 0):
        repeats &= history[:, place : place + count] == latest[:, place, None]
    return history[:, history.shape[1] - count :].where(repeats, PAD)


def _distinct(tokens: Tensor, exempt: Tensor) -> Tensor:
    """Return the tokens (R, N) with PAD in place of those that stand twice or are exempt (R, M)."""
    tokens = tokens.masked_fill((tokens[:, :, None] == exempt[:, None]).any(2), PAD).sort(1).values
    tokens[:, 1:] = tokens[:, 1:].masked_fill(tokens[:, 1:] == tokens[:, :-1], PAD)
    return tokens


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
