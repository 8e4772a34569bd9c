"""Label-smoothed cross-entropy over the vocabulary (section 5.4), without storing all logits.

The logits of a batch (tokens x vocabulary, in float32) and their gradient would be by far the largest tensors of a
step. Here they are computed for a chunk of rows at a time: the loss of the chunk and its gradient with respect to the
decoder's output and the projection are computed immediately, while the chunk is still in the cache.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.model.attention import exact_type
from nmt.model.backends.chosen import backend
from nmt.model.backends.eager import LOGITS_PER_CHUNK, LOGITS_PER_GPU_CHUNK
from nmt.model.dropout import thread_generator


class Losses(NamedTuple):
    """Sums over the labels that are not ignored; divide them by the number of labels."""

    smoothed: Tensor
    """Cross-entropy with smoothed labels, and what features add to it: what training minimises."""
    nll: Tensor
    """Negative log-likelihood of the labels, without a gradient; the perplexity is exp of its mean."""


def smoothed_cross_entropy(
    output: Tensor,
    projection: Tensor,
    labels: Tensor,
    *,
    smoothing: float,
    ignore: int,
    working_projection: Tensor | None = None,
    sampled_words: int = 0,
) -> Losses:
    """Return the losses of the decoder's output (T, d), summed over tokens.

    The logits are output @ projection.T (T, V). The label has probability 1 - smoothing, and the rest is spread evenly
    over all V words. Tokens whose label is `ignore` do not count.

    Products are in the precision of the output; `working_projection` is the projection in that precision, if there is
    a copy. `sampled_words` estimates the losses; see `SampledVocabulary`.
    """
    working = projection.to(output.dtype) if working_projection is None else working_projection
    if not torch.is_grad_enabled():  # a parameter would get a gradient that nobody reads
        projection = projection.detach()
    sampled = sample_vocabulary(labels[labels != ignore], len(projection), sampled_words) if sampled_words else None
    arguments = output, projection, working.detach(), labels, smoothing, ignore, sampled
    return Losses(*_SmoothedCrossEntropy.apply(*arguments))  # type: ignore[no-untyped-call]


class SampledVocabulary(NamedTuple):
    """The words that a loss is normalised over: those that occur in the batch, and a random sample of the others.

    In the softmax's denominator, which this estimates without bias, each word of the sample stands for several of the
    others (Jean et al., 2015). Most of the probability is that of words in the batch.
    """

    words: Tensor
    """(W,) ids of the words: first those that occur, then the sample."""
    occurring: int
    places: Tensor
    """(V,) the index in `words` of each of them."""
    log_weight: float
    """Logarithm of how many words one of the sample stands for, which is added to its logit."""


def sample_vocabulary(labels: Tensor, words: int, count: int) -> SampledVocabulary | None:
    """Draw `count` words besides those that occur among the labels; None if that would be all."""
    occurring = labels.unique()
    if len(occurring) + count >= words:
        return None
    others = torch.ones(words, dtype=torch.bool).index_fill_(0, occurring, value=False).nonzero()[:, 0]
    drawn = others[torch.randperm(len(others), generator=thread_generator())[:count]]
    chosen = torch.cat([occurring, drawn])
    places = torch.zeros(words, dtype=torch.int64).index_copy_(0, chosen, torch.arange(len(chosen)))
    return SampledVocabulary(chosen, len(occurring), places, math.log(len(others) / count))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Computes the gradient in the forward pass, because its closed form is softmax minus smoothed labels.

    The evenly spread part of the labels needs no pass over the logits: the mean of the logits is the output times
    the mean of the projection's rows, and its gradient is the same for every word.
    """

    @staticmethod
    def forward(
        ctx: Any,
        output: Tensor,
        projection: Tensor,
        working: Tensor,
        labels: Tensor,
        smoothing: float,
        ignore: int,
        sampled: SampledVocabulary | None,
    ) -> tuple[Tensor, Tensor]:
        exact = exact_type(output)  # the precision of sums
        counts = labels != ignore
        counted, labels = counts.to(exact), labels.where(counts, 0)  # counted: (T,) 1 for a label, 0 for an ignored one
        mean_word = projection.mean(0, dtype=exact)
        normaliser, label_logit = output.new_empty(2, len(output), dtype=exact)  # log of the softmax's denominator
        output_gradient = torch.empty_like(output) if ctx.needs_input_grad[0] else None
        projection_product = None
        if sampled is not None:
            working, labels = working[sampled.words], sampled.places[labels]
        rows = rows_per_chunk(output, words=len(working))
        for start in range(0, len(output), rows):
            chunk = slice(start, start + rows)
            logits = backend().multiply(output[chunk], working.T)
            if sampled is not None:
                logits[:, sampled.occurring :] += sampled.log_weight
            # from here on, `logits` holds their gradient, without the evenly spread part of the labels
            normaliser[chunk], label_logit[chunk] = backend().softmax_gradient_(logits, labels[chunk], smoothing)
            if output_gradient is not None:
                output_gradient[chunk] = backend().multiply(logits, working)
            if ctx.needs_input_grad[1]:
                counted_rows = output[chunk] * counted[chunk, None].to(output.dtype)
                product = backend().exact_product(logits.T, counted_rows, exact)
                projection_product = product if projection_product is None else projection_product.to(exact) + product
        if sampled is not None and projection_product is not None:
            all_words = projection_product.new_zeros(projection.shape)
            projection_product = all_words.index_copy_(0, sampled.words, projection_product)
        nll = normaliser - label_logit
        if output_gradient is not None:
            output_gradient.sub_(smoothing * mean_word).mul_(counted[:, None])
        evenly_spread = smoothing / len(projection) * (counted @ output.to(exact))
        ctx.save_for_backward(output_gradient, projection_product, evenly_spread)
        ctx.mark_non_differentiable(nll)
        evenly = normaliser - output.to(exact) @ mean_word
        smoothed = (1 - smoothing) * nll + smoothing * evenly
        return smoothed @ counted, nll @ counted

    @staticmethod
    def backward(ctx: Any, smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        output, product, evenly_spread = ctx.saved_tensors
        output_gradient = None if output is None else output * smoothed.to(output.dtype)
        projection_gradient = None if product is None else torch.addcmul(-smoothed * evenly_spread, product, smoothed)
        return output_gradient, projection_gradient, None, None, None, None, None


def rows_per_chunk(output: Tensor, words: int) -> int:
    """Return how many rows of logits to hold at a time; on a GPU all chunks are of one size, so that none is small."""
    if output.device.type == "cpu":
        return max(1, LOGITS_PER_CHUNK // words)
    chunks = math.ceil(len(output) * words / LOGITS_PER_GPU_CHUNK)
    return math.ceil(len(output) / max(1, chunks))
