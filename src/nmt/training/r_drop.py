"""The loss of R-Drop, and its gradient."""

from typing import Any

import torch
from torch import Tensor

from nmt.model.attention import exact_type
from nmt.model.backends.chosen import backend
from nmt.training.loss import Losses, rows_per_chunk

TENSORS_PER_CHUNK = 6
"""Tensors of the size of a chunk of logits that exist at the same time; chunks are smaller by this factor."""


def r_drop_loss(
    first: Tensor,
    second: Tensor,
    projection: Tensor,
    working: Tensor,
    labels: Tensor,
    *,
    smoothing: float,
    weight: float,
    ignore: int,
) -> Losses:
    """Return the losses of two outputs (T, d) of the decoder for the same labels (T,), summed over tokens.

    Training minimises the mean of both label-smoothed cross-entropies plus weight / 4 times the sum of both
    Kullback-Leibler divergences: half the loss of the paper, so that without a weight it is the usual loss. `working`
    is the projection (V, d) in the precision of the outputs. The gradient is computed chunk by chunk, as in
    `nmt.training.loss`. Tokens whose label is `ignore` do not count.
    """
    arguments = first, second, projection, working.detach(), labels, smoothing, weight, ignore
    return Losses(*_RDropFunction.apply(*arguments))  # type: ignore[no-untyped-call]


class _RDropFunction(torch.autograd.Function):
    """Computes the gradient in the forward pass, because it has a closed form.

    With p and q the two distributions, r = log p - log q and y the smoothed labels, the gradient of the first logits is
    (p - y) / 2 + weight / 4 (p (r - KL(p, q)) + p - q), and likewise for the second.
    """

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        projection: Tensor,
        working: Tensor,
        labels: Tensor,
        smoothing: float,
        weight: float,
        ignore: int,
    ) -> tuple[Tensor, Tensor]:
        exact = exact_type(first)
        smoothed, nll = (first.new_zeros((), dtype=exact) for _ in range(2))
        outputs, gradients = (first, second), (torch.empty_like(first), torch.empty_like(second))
        projection_gradient = torch.zeros_like(projection, dtype=exact) if ctx.needs_input_grad[2] else None
        rows = max(1, rows_per_chunk(first, len(projection)) // TENSORS_PER_CHUNK)
        for start in range(0, len(first), rows):
            chunk = slice(start, start + rows)
            logits = [backend().multiply(output[chunk], working.T).to(exact) for output in outputs]
            counted = labels[chunk] != ignore
            of_words = labels[chunk].where(counted, 0)[:, None]
            losses, both = _chunk(logits[0], logits[1], of_words, counted.to(exact)[:, None], smoothing, weight)
            smoothed += losses.smoothed
            nll += losses.nll
            for output, gradient, exact_gradient in zip(outputs, gradients, both, strict=True):
                of_logits = exact_gradient.to(output.dtype)
                backend().multiply_into(gradient[chunk], of_logits, working)
                if projection_gradient is not None:
                    projection_gradient += backend().exact_product(of_logits.T, output[chunk], exact)
        ctx.save_for_backward(*gradients, projection_gradient)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        first, second, projection = ctx.saved_tensors
        projection_gradient = None if projection is None else projection * smoothed
        outputs = first * smoothed.to(first.dtype), second * smoothed.to(second.dtype)
        return *outputs, projection_gradient, None, None, None, None, None


def _chunk(
    first: Tensor, second: Tensor, labels: Tensor, counted: Tensor, smoothing: float, weight: float
) -> tuple[Losses, list[Tensor]]:
    """Return the losses of some rows of logits (T, V), summed, and their gradients.

    `labels` (T, 1) are words, and `counted` (T, 1) is 1 for those that count, else 0.
    """
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    p, q = log_p.exp(), log_q.exp()
    ratio = log_p - log_q
    kl_pq, kl_qp = (p * ratio).sum(-1, keepdim=True), -(q * ratio).sum(-1, keepdim=True)
    nll = -(log_p.gather(-1, labels) + log_q.gather(-1, labels))[:, 0] / 2
    evenly = -(log_p.mean(-1) + log_q.mean(-1)) / 2
    smoothed = (1 - smoothing) * nll + smoothing * evenly
    smoothed = smoothed + weight / 4 * (kl_pq + kl_qp)[:, 0]
    gradients = []
    for each, divergence in ((p, p * (ratio - kl_pq) + p - q), (q, q * (-ratio - kl_qp) + q - p)):
        gradient = (each - smoothing / each.shape[-1]) / 2 + weight / 4 * divergence
        gradient.scatter_add_(-1, labels, gradient.new_full(labels.shape, (smoothing - 1) / 2))
        gradients.append(gradient.mul_(counted))
    return Losses(smoothed @ counted[:, 0], nll @ counted[:, 0]), gradients
