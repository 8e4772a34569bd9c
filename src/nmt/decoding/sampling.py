"""Sampling: draw translations at random, each with the probability that the model gives it.

A sample is searched like a sentence, so each sentence stands N times in the batch, one after the other. A sample that
has ended leaves the batch.

Shapes: B samples of all sentences, N of each sentence, R of them still being drawn, V tokens in the vocabulary, C
tokens from which a row is drawn.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, length_penalty, top
from nmt.text.special import BOS, EOS, PAD


def sample(
    scorer: NextTokenScorer, limits: Sequence[int], config: DecodingConfig, generator: torch.Generator
) -> list[list[Hypothesis]]:
    """Draw `nbest` translations of each sentence, and return them with the best score first.

    Args:
        scorer: scores the next tokens of the samples.
        limits: longest translation of each sample; its last token can only be EOS.
        config: the number of samples, what they are drawn from, and the exponent of the length penalty.
        generator: the source of randomness, on the device of the scores.
    """
    max_lengths = torch.tensor(limits)
    samples = torch.arange(len(limits))  # (R,) the sample of each row
    tokens, parents = torch.full_like(samples, BOS), samples
    totals, drawn = torch.zeros(len(limits)), torch.full((len(limits), max(limits)), EOS)
    length = 0
    while len(samples):
        log_probabilities = scorer(tokens, parents).log_softmax(1, dtype=torch.float32)
        log_probabilities[:, PAD : BOS + 1] = NEVER
        must_end = (max_lengths[samples] == length + 1).to(log_probabilities.device)
        chosen = _draw(log_probabilities, config, generator).masked_fill(must_end, EOS)
        scores = log_probabilities.gather(1, chosen[:, None]).squeeze(1)
        # one copy from the device for both: float64 holds each of these numbers exactly
        tokens, scores = torch.stack([chosen.double(), scores.double()]).cpu()
        tokens = tokens.long()
        totals[samples] += scores.float()
        drawn[samples, length] = tokens
        parents = (tokens != EOS).nonzero().squeeze(1)
        samples, tokens = samples[parents], tokens[parents]
        length += 1
    return _hypotheses(drawn.unflatten(0, (-1, config.nbest)), totals.view(-1, config.nbest), config.alpha)


def _draw(log_probabilities: Tensor, config: DecodingConfig, generator: torch.Generator) -> Tensor:
    """Draw a token for each row (R, V)."""
    scores, possible = log_probabilities / config.temperature, None
    if config.top_k:
        scores, possible = top(scores, config.top_k)
    if config.top_p < 1:
        scores = _nucleus(scores, config.top_p)
    # torch.multinomial draws a number per token, which takes ten times as long, and refuses the scores of a model that
    # has diverged.
    sums = scores.softmax(1).cumsum(1)
    drawn = torch.rand(len(sums), 1, device=sums.device, generator=generator) * sums[:, -1:]
    places = torch.searchsorted(sums, drawn, right=True).clamp(max=sums.shape[1] - 1)
    return (places if possible is None else possible.gather(1, places)).squeeze(1)


def _nucleus(scores: Tensor, top_p: float) -> Tensor:
    """Set scores (R, C) to -inf, except the fewest whose probabilities reach `top_p`."""
    ordered, order = scores.sort(1, descending=True)
    probabilities = ordered.softmax(1)
    before = probabilities.cumsum(1) - probabilities
    return scores.scatter(1, order, ordered.masked_fill(before >= top_p, NEVER))


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
