"""Label-smoothed cross-entropy over the vocabulary (section 5.4), without ever holding all the scores.

The scores of a batch, (tokens x words) in float32 and their gradient once more, would be the largest
tensors of a step by far. Here they live a slice of rows at a time: each slice is scored, its loss taken and
its gradient carried back to the decoder's output and the projection at once, while it is still in the cache.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

SCORES_PER_SLICE = 8 * 1024 * 1024
"""Scores held at a time."""
SCORES_IN_CACHE = 256 * 1024
"""Scores that a CPU turns into their gradient at a time: it takes several passes, which these stay in the cache for."""


class Losses(NamedTuple):
    """Sums over the tokens that count; divide by their number."""

    smoothed: Tensor
    """What training minimises: cross-entropy against the smoothed labels."""
    likelihood: Tensor
    """Negative log-likelihood of the labels themselves: perplexity is exp of its mean. Has no gradient."""


def smoothed_cross_entropy(
    output: Tensor, projection: Tensor, labels: Tensor, *, smoothing: float, ignore: int
) -> Losses:
    """Losses of the decoder's output (T, d) under scores output @ projection.T (T, V), summed over tokens.

    The label has probability 1 - smoothing, and smoothing is spread evenly over all V words. Tokens
    whose label is `ignore` count for nothing.
    """
    device = output.device.type
    if torch.is_autocast_enabled(device):
        output = output.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        return Losses(*_SmoothedCrossEntropy.apply(output, projection, labels, smoothing, ignore))  # type: ignore[no-untyped-call]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient is known in closed form, softmax minus smoothed labels, so it is made on the way forward.

    What is spread evenly over the words needs no pass over the scores: their mean is the output times the mean
    of the projection's rows, and its gradient is the same for each word.
    """

    @staticmethod
    def forward(
        ctx: Any, output: Tensor, projection: Tensor, labels: Tensor, smoothing: float, ignore: int
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad[:2])
        exact = torch.promote_types(output.dtype, torch.float32)
        counts = labels != ignore
        counted, labels = counts.to(exact), labels.where(counts, 0)
        mean_word = projection.mean(0, dtype=exact)
        normaliser, label_score = output.new_empty(2, len(output), dtype=exact)
        output_gradient = torch.empty_like(output) if wanted else None
        projection_gradient = torch.zeros_like(projection, dtype=exact) if wanted else None
        rounded = projection.to(output.dtype)
        rows = max(1, SCORES_PER_SLICE // len(projection))
        for start in range(0, len(output), rows):
            part = slice(start, start + rows)
            scores = output[part] @ rounded.T
            label_score[part] = scores.gather(-1, labels[part, None])[:, 0]
            normaliser[part] = _take_gradient(scores, labels[part], smoothing, exact)
            if output_gradient is not None and projection_gradient is not None:
                output_gradient[part] = scores @ rounded
                projection_gradient += scores.T @ (output[part] * counted[part, None].to(output.dtype))
        likelihood = normaliser - label_score
        if output_gradient is not None and projection_gradient is not None:
            output_gradient.sub_(smoothing * mean_word).mul_(counted[:, None])
            projection_gradient.sub_(smoothing / len(projection) * (counted @ output.to(exact)))
        ctx.save_for_backward(output_gradient, projection_gradient)
        ctx.mark_non_differentiable(likelihood)
        evenly = normaliser - output.to(exact) @ mean_word
        smoothed = (1 - smoothing) * likelihood + smoothing * evenly
        return smoothed @ counted, likelihood @ counted

    @staticmethod
    def backward(ctx: Any, smoothed: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        output_gradient, projection_gradient = ctx.saved_tensors
        return output_gradient * smoothed.to(output_gradient.dtype), projection_gradient * smoothed, None, None, None


def _take_gradient(scores: Tensor, labels: Tensor, smoothing: float, exact: torch.dtype) -> Tensor:
    """Put the gradient but for the even part in the place of scores (T, V); gives the log of their normaliser."""
    at_once = max(1, SCORES_IN_CACHE // scores.shape[-1]) if scores.device.type == "cpu" else len(scores)
    normalisers = []
    for part, wanted in zip(scores.split(at_once), labels[:, None].split(at_once), strict=True):
        probabilities = torch.softmax(part, dim=-1, dtype=exact)
        # log of the sum of exp(score), by way of the largest score, whose probability cannot underflow
        normalisers.append(part.amax(-1).to(exact) - probabilities.amax(-1).log_())
        probabilities.scatter_add_(-1, wanted, probabilities.new_full(wanted.shape, smoothing - 1))
        part.copy_(probabilities)
    return torch.cat(normalisers)
