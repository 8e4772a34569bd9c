"""Sampling: draw translations at random, each with the probability that the model gives it.

A sample is searched like a sentence, so each sentence stands N times in the batch, one after the other. A sample that
has ended leaves the batch.

Shapes: B samples of all sentences, N of each sentence, R of them still being drawn, V tokens in the vocabulary.
"""

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, length_penalty, remaining
from nmt.decoding.noise import SeededNoise
from nmt.text.special import BOS, EOS, PAD


def sample(
    scorer: NextTokenScorer, max_lengths: Tensor, config: DecodingConfig, seeds: Tensor
) -> list[list[Hypothesis]]:
    """Draw `config.nbest` translations of each sentence, and return them with the best score first.

    Args:
        scorer: scores the next tokens of the samples.
        max_lengths: (B,) longest translation of each sample; its last token can only be EOS.
        config: temperature, epsilon, top_k, top_p, the number of samples and the length penalty.
        seeds: (B,) the seed of each sample's sentence.
    """
    count, device = config.nbest, max_lengths.device
    samples = torch.arange(len(max_lengths), device=device)  # (R,) the sample of each row
    tokens, parents = torch.full_like(max_lengths, BOS), samples
    noise = SeededNoise(seeds + samples % count)
    totals = torch.zeros(len(max_lengths), device=device)
    drawn = torch.full((len(max_lengths), int(max_lengths.max())), EOS, device=device)
    length = 0
    while len(samples):
        scores = scorer(tokens, parents)
        at_limit = max_lengths[samples] == length + 1
        tokens, log_probabilities = _draw(scores, at_limit, config, noise)
        totals[samples] += log_probabilities
        drawn[samples, length] = tokens
        parents = remaining(tokens == EOS)
        samples, tokens = samples[parents], tokens[parents]
        noise.extend(tokens, parents)
        length += 1
    return _hypotheses(drawn.unflatten(0, (-1, count)), totals.view(-1, count), config.alpha)


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
    """Return the samples (S, N, t) of S sentences, given their log-probabilities (S, N), with the best score first."""
    found = []
    for samples, sums in zip(drawn.tolist(), totals.tolist(), strict=True):
        hypotheses = []
        for tokens, total in zip(samples, sums, strict=True):
            kept = tokens[: tokens.index(EOS)]
            hypotheses.append(Hypothesis(kept, total / length_penalty(len(kept) + 1, alpha), total))
        found.append(sorted(hypotheses, key=lambda each: -each.score))
    return found
