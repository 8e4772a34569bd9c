"""Sampling: translations drawn at random, as probable as the model thinks them.

Shapes: B sentences in all, S sentences still drawn for, N samples of each, R = S * N rows, V words.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, force_prefixes, length_penalty
from nmt.text.special import BOS, EOS, PAD


def sample(
    step: NextTokenScorer,
    max_lengths: Tensor,
    config: DecodingConfig,
    random: torch.Generator,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Draw `config.nbest` translations of each sentence, the most probable first.

    Args:
        step: what scores the next token, see `nmt.decoding.beam.Step`.
        max_lengths: (B,) most tokens of each sentence's translation; the last of them can only be EOS.
        config: how to draw.
        random: where chance comes from.
        prefixes: tokens that each sentence's translations begin with.
    """
    device, count = max_lengths.device, config.nbest
    step = force_prefixes(step, prefixes, device) if prefixes and any(prefixes) else step
    sentences = torch.arange(len(max_lengths), device=device)
    totals = torch.zeros(len(max_lengths), count, device=device)
    drawn = torch.empty(len(max_lengths), count, 0, dtype=torch.int64, device=device)
    scores = step(torch.full_like(max_lengths, BOS), sentences).repeat_interleave(count, 0)
    parents = sentences.repeat_interleave(count)
    while True:
        full = (max_lengths == drawn.shape[2] + 1)[sentences].repeat_interleave(count)
        tokens, log_probabilities = _draw(scores, full, config, random)
        going = ~(drawn[sentences] == EOS).any(2)
        totals[sentences] += log_probabilities.view(-1, count).where(going, 0)
        column = torch.full_like(totals, EOS, dtype=torch.int64)
        column[sentences] = tokens.view(-1, count).where(going, EOS)
        drawn = torch.cat([drawn, column[:, :, None]], 2)
        kept = (column[sentences] != EOS).any(1).nonzero().squeeze(1)
        if not len(kept):
            return _hypotheses(drawn, totals, config.alpha)
        rows = (kept[:, None] * count + torch.arange(count, device=device)).flatten()
        scores = step(tokens[rows], parents[rows])
        sentences = sentences[kept]
        parents = torch.arange(len(rows), device=device)


def _draw(scores: Tensor, full: Tensor, config: DecodingConfig, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """A token for each row of scores (R, V), and its log-probability; where `full`, EOS."""
    log_probabilities = scores.log_softmax(1, dtype=torch.float32)
    log_probabilities[:, [PAD, BOS]] = NEVER
    probabilities = _narrowed(log_probabilities / config.temperature, config.top_k, config.top_p).softmax(1)
    tokens = torch.multinomial(probabilities, 1, generator=random).squeeze(1).where(~full, EOS)
    return tokens, log_probabilities.gather(1, tokens[:, None]).squeeze(1)


def _narrowed(scores: Tensor, top_k: int, top_p: float) -> Tensor:
    """Scores (R, V) of the `top_k` best, and of the fewest whose probabilities reach `top_p`; -inf for the rest."""
    if 0 < top_k < scores.shape[1]:
        scores = scores.masked_fill(scores < scores.topk(top_k, 1).values[:, -1:], NEVER)
    if top_p < 1:
        ordered, order = scores.sort(1, descending=True)
        probabilities = ordered.softmax(1)
        before = probabilities.cumsum(1) - probabilities
        scores = scores.scatter(1, order, ordered.masked_fill(before >= top_p, NEVER))
    return scores


def _hypotheses(drawn: Tensor, totals: Tensor, alpha: float) -> list[list[Hypothesis]]:
    """Read the samples (B, N, t) back, with their log-probabilities (B, N)."""
    found = []
    for samples, sums in zip(drawn.tolist(), totals.tolist(), strict=True):
        hypotheses = []
        for tokens, total in zip(samples, sums, strict=True):
            kept = tokens[: tokens.index(EOS)]
            hypotheses.append(Hypothesis(kept, total / length_penalty(len(kept) + 1, alpha), total))
        found.append(sorted(hypotheses, key=lambda each: -each.score))
    return found
