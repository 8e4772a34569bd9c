"""Sampling: draw translations at random, each with the probability that the model gives it.

A sample is searched like a sentence, so each sentence stands N times in the batch, one after the other. A sample that
has ended leaves the batch.

Shapes: B samples of all sentences, N of each sentence, R of them still being drawn, V tokens in the vocabulary, C
tokens from which a row is drawn.
"""

import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, length_penalty, remaining, top
from nmt.features.sampling.noise import SeededNoise
from nmt.features.sampling.settings import SamplingDecoding
from nmt.text.special import BOS, EOS, PAD

CACHED_ROWS = 128
"""Rows of scores to draw from together on a CPU: few enough to stay in its cache, which halves the time."""


def sample(
    scorer: NextTokenScorer, max_lengths: Tensor, count: int, alpha: float, config: SamplingDecoding, seeds: Tensor
) -> list[list[Hypothesis]]:
    """Draw `count` translations of each sentence, and return them with the best score first.

    Args:
        scorer: scores the next tokens of the samples.
        max_lengths: (B,) longest translation of each sample; its last token can only be EOS.
        count: the number of samples.
        alpha: the exponent of the length penalty.
        config: temperature, epsilon, top_k and top_p.
        seeds: (B,) the seed of each sample's sentence.
    """
    device = max_lengths.device
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
    return _hypotheses(drawn.unflatten(0, (-1, count)), totals.view(-1, count), alpha)


def _draw(scores: Tensor, at_limit: Tensor, config: SamplingDecoding, noise: SeededNoise) -> tuple[Tensor, Tensor]:
    """Draw a token for each row of scores (R, V), or EOS for rows at their limit; return it and its log-probability."""
    size = CACHED_ROWS if scores.device.type == "cpu" else len(scores)
    parts = zip(scores.split(size), at_limit.split(size), noise.split(size), strict=True)
    tokens, log_probabilities = zip(*(_draw_part(*part, config) for part in parts), strict=True)
    return torch.cat(tokens), torch.cat(log_probabilities)


def _draw_part(scores: Tensor, at_limit: Tensor, noise: SeededNoise, config: SamplingDecoding) -> tuple[Tensor, Tensor]:
    """See `_draw`."""
    log_probabilities = scores.log_softmax(1, dtype=torch.float32)
    allowed = (1 - log_probabilities[:, [PAD, BOS]].exp().sum(1)).clamp(min=0)  # the probability of all other tokens
    log_probabilities[:, [PAD, BOS]] = NEVER
    chances = log_probabilities
    if config.temperature != 1:
        chances, allowed = (chances / config.temperature).log_softmax(1), torch.ones_like(allowed)
    if config.epsilon or 0 < config.top_k < scores.shape[1]:
        possible = _possible(chances, (config.epsilon * allowed).log(), config.top_k)
        places = (_nucleus(chances.gather(1, possible), config) + noise.draw(scores.shape[1], possible)).argmax(1)
        tokens = possible.gather(1, places[:, None]).squeeze(1)
    else:
        tokens = (_nucleus(chances, config) + noise.draw(scores.shape[1])).argmax(1)
    tokens = tokens.where(~at_limit, EOS)
    return tokens, log_probabilities.gather(1, tokens[:, None]).squeeze(1)


def _possible(scores: Tensor, least: Tensor, top_k: int) -> Tensor:
    """Return the tokens (R, C) with a score (R, V) of at least `least` (R,), filled up with PAD.

    The best token always remains; if `top_k` is above 0, only that many do. They are few, so that all further
    operations take little time.
    """
    least = least.minimum(scores.amax(1))
    if top_k:
        least = least.maximum(top(scores, top_k)[0][:, -1])
    rows, tokens = (scores >= least[:, None]).nonzero(as_tuple=True)
    counts = rows.bincount(minlength=len(least))
    places = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    possible = tokens.new_full((len(least), max(1, int(counts.max()))), PAD)
    possible[rows, places] = tokens
    return possible


def _nucleus(scores: Tensor, config: SamplingDecoding) -> Tensor:
    """Set scores (R, C) to -inf, except the fewest whose probabilities reach `top_p`."""
    if config.top_p == 1:
        return scores
    ordered, order = scores.sort(1, descending=True)
    probabilities = ordered.softmax(1)
    before = probabilities.cumsum(1) - probabilities
    return scores.scatter(1, order, ordered.masked_fill(before >= config.top_p, NEVER))


def _hypotheses(drawn: Tensor, totals: Tensor, alpha: float) -> list[list[Hypothesis]]:
    """Return the samples (S, N, t) of S sentences, given their log-probabilities (S, N), with the best score first."""
    found = []
    for samples, sums in zip(drawn.tolist(), totals.tolist(), strict=True):
        hypotheses = []
        for tokens, total in zip(samples, sums, strict=True):
            kept = tokens[: tokens.index(EOS)]
            if total > NEVER:  # not if the model's scores are not finite
                hypotheses.append(Hypothesis(kept, total / length_penalty(len(kept) + 1, alpha), total))
        found.append(sorted(hypotheses, key=lambda each: -each.score))
    return found
