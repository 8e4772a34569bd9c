"""From logits to the gradient of the cross-entropy, in place: one pass to read them, one to replace them."""

import torch
from torch import Tensor

from nmt.model.kernels.backend import sum_dtype, uses_triton

LOGITS_IN_CACHE = 256 * 1024
"""The number of logits that a CPU replaces by their gradient at a time, so that they stay in its cache."""


def softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Replace logits (T, V) by softmax(logits), minus 1 - smoothing at each row's label (T,).

    Return the log-sum-exp of each row and the label's logit, both (T,) in float32 or more.
    """
    normaliser, label_logit = torch.ops.nmt.softmax_gradient_(logits, labels, smoothing)
    return normaliser, label_logit


@torch.library.custom_op("nmt::softmax_gradient_", mutates_args={"logits"})
def _softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    if uses_triton(logits):
        from nmt.model.kernels import triton_softmax  # noqa: PLC0415 - imports Triton

        return triton_softmax.softmax_gradient_(logits, labels, smoothing)
    exact = sum_dtype(logits)
    label_logit = logits.gather(-1, labels[:, None])[:, 0].to(exact, copy=True)
    rows = max(1, LOGITS_IN_CACHE // logits.shape[-1]) if logits.device.type == "cpu" else len(logits)
    normalisers = []
    for chunk, chunk_labels in zip(logits.split(rows), labels[:, None].split(rows), strict=True):
        probabilities = torch.softmax(chunk, dim=-1, dtype=exact)
        # log-sum-exp through the largest logit, whose probability cannot underflow
        normalisers.append(chunk.amax(-1).to(exact) - probabilities.amax(-1).log_())
        probabilities.scatter_add_(-1, chunk_labels, probabilities.new_full(chunk_labels.shape, smoothing - 1))
        chunk.copy_(probabilities)
    return torch.cat(normalisers), label_logit


@_softmax_gradient_.register_fake
def _(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    dtype = sum_dtype(logits)
    return logits.new_empty(len(logits), dtype=dtype), logits.new_empty(len(logits), dtype=dtype)
