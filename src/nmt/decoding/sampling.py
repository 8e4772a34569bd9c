"""Sampling: draw translations at random, each with the probability that the model gives it.

Shapes: B sentences in the batch, S sentences with unfinished samples, N samples per sentence, R = S * N rows,
V tokens in the vocabulary.
"""

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, length_penalty
from nmt.decoding.noise import SeededNoise
from nmt.text.special import BOS, EOS, PAD


def sample(
    scorer: NextTokenScorer, max_lengths: Tensor, config: DecodingConfig, seeds: Tensor
) -> list[list[Hypothesis]]:
    """Draw `config.nbest` translations of each sentence, and return them with the best score first.

    Args:
        scorer: scores the next tokens.
        max_lengths: (B,) longest translation of each sentence; its last token can only be EOS.
        config: temperature, epsilon, top_k, top_p, the number of samples and the length penalty.
        seeds: (B,) the seed of each sentence.
    """
    device, count = max_lengths.device, config.nbest
    sentences = torch.arange(len(max_lengths), device=device)
    totals = torch.zeros(len(max_lengths), count, device=device)
    drawn = torch.empty(len(max_lengths), count, 0, dtype=torch.int64, device=device)
    scores = scorer(torch.full_like(max_lengths, BOS), sentences).repeat_interleave(count, 0)
    parents = sentences.repeat_interleave(count)
    noise = SeededNoise((seeds[:, None] + torch.arange(count, device=device)).flatten())
    while True:
        at_limit = (max_lengths == drawn.shape[2] + 1)[sentences].repeat_interleave(count)
        tokens, log_probabilities = _draw(scores, at_limit, config, noise)
        unfinished = ~(drawn[sentences] == EOS).any(2)
        totals[sentences] += log_probabilities.view(-1, count).where(unfinished, 0)
        column = torch.full_like(totals, EOS, dtype=torch.int64)
        column[sentences] = tokens.view(-1, count).where(unfinished, EOS)
        drawn = torch.cat([drawn, column[:, :, None]], 2)
        kept = (column[sentences] != EOS).any(1).nonzero().squeeze(1)
        if not len(kept):
            return _hypotheses(drawn, totals, config.alpha)
        rows = (kept[:, None] * count + torch.arange(count, device=device)).flatten()
        scores = scorer(tokens[rows], parents[rows])
        noise.extend(tokens[rows], rows)
        sentences = sentences[kept]
        parents = torch.arange(len(rows), device=device)


def _draw(scores: Tensor, at_limit: Tensor, config: DecodingConfig, noise: SeededNoise) -> tuple[Tensor, Tensor]:
    """Draw a token for each row of scores (R, V), or EOS for rows at their limit; return it and its log-probability."""
    log_probabilities = scores.log_softmax(1, dtype=torch.float32)
    log_probabilities[:, [PAD, BOS]] = NEVER
    chances = _narrow(log_probabilities / config.temperature, config)
    tokens = (chances + noise.draw(chances.shape[1])).argmax(1).where(~at_limit, EOS)
    return tokens, log_probabilities.gather(1, tokens[:, None]).squeeze(1)


def _narrow(scores: Tensor, config: DecodingConfig) -> Tensor:
    """Set scores (R, V) to -inf, except the `top_k` highest and the fewest whose probabilities reach `top_p`.

    Those of probabilities below `epsilon` become -inf, too, except the highest.
    """
    if config.epsilon:
        improbable = scores.softmax(1) < config.epsilon
        scores = scores.masked_fill(improbable & (scores < scores.amax(1, keepdim=True)), NEVER)
    if 0 < config.top_k < scores.shape[1]:
        scores = scores.masked_fill(scores < scores.topk(config.top_k, 1).values[:, -1:], NEVER)
    if config.top_p < 1:
        ordered, order = scores.sort(1, descending=True)
        probabilities = ordered.softmax(1)
        before = probabilities.cumsum(1) - probabilities
        scores = scores.scatter(1, order, ordered.masked_fill(before >= config.top_p, NEVER))
    return scores


def _hypotheses(drawn: Tensor, totals: Tensor, alpha: float) -> list[list[Hypothesis]]:
    """Return the samples (B, N, t), given their log-probabilities (B, N), with the best score first."""
    found = []
    for samples, sums in zip(drawn.tolist(), totals.tolist(), strict=True):
        hypotheses = []
        for tokens, total in zip(samples, sums, strict=True):
            kept = tokens[: tokens.index(EOS)]
            hypotheses.append(Hypothesis(kept, total / length_penalty(len(kept) + 1, alpha), total))
        found.append(sorted(hypotheses, key=lambda each: -each.score))
    return found
