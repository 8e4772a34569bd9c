"""From logits to the gradient of the cross-entropy, in place: one pass to read them, one to replace them."""

import torch
from torch import Tensor

from nmt.model.kernels.backend import is_traced, sum_dtype, uses_triton
from nmt.model.kernels.c.library import LANES, buffers, computes_in_c, library

LOGITS_PER_CHUNK = 8 * 1024 * 1024
"""The largest number of logits of the loss in memory at a time on a CPU."""
LOGITS_PER_GPU_CHUNK = 256 * 1024 * 1024
"""The same on a GPU, 512 MiB in bf16: each further chunk adds launches and reads the gradient's sum again."""
LOGITS_IN_CACHE = 256 * 1024
"""The number of logits that a CPU replaces by their gradient at a time, so that they stay in its cache."""


def softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Replace logits (T, V) by softmax(logits), minus 1 - smoothing at each row's label (T,).

    Return the log-sum-exp of each row and the label's logit, both (T,) in float32 or more.
    """
    call = torch.ops.nmt.softmax_gradient_ if is_traced() else _compute_gradient_
    normaliser, label_logit = call(logits, labels, smoothing)
    return normaliser, label_logit


def _compute_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    if uses_triton(logits):
        from nmt.model.kernels import triton_softmax  # noqa: PLC0415 - imports Triton

        return triton_softmax.softmax_gradient_(logits, labels, smoothing)
    exact = sum_dtype(logits)
    label_logit = logits.gather(-1, labels[:, None])[:, 0].to(exact, copy=True)
    if computes_in_c(logits) and logits.is_contiguous():
        return _in_c(logits, labels.contiguous(), smoothing), label_logit
    rows = max(1, LOGITS_IN_CACHE // logits.shape[-1]) if logits.device.type == "cpu" else len(logits)
    normalisers = []
    for chunk, chunk_labels in zip(logits.split(rows), labels[:, None].split(rows), strict=True):
        probabilities = torch.softmax(chunk, dim=-1, dtype=exact)
        # log-sum-exp through the largest logit, whose probability cannot underflow
        normalisers.append(chunk.amax(-1).to(exact) - probabilities.amax(-1).log_())
        probabilities.scatter_add_(-1, chunk_labels, probabilities.new_full(chunk_labels.shape, smoothing - 1))
        chunk.copy_(probabilities)
    return torch.cat(normalisers), label_logit


def _in_c(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Replace logits as `softmax_gradient_` does, by the operation in C; return the log-sum-exp of each row."""
    largest, total = torch.empty(2, len(logits))
    rows = buffers(logits.shape[-1] + LANES)
    library(logits).softmax_gradient(
        logits.data_ptr(), labels.data_ptr(), smoothing,
        largest.data_ptr(), total.data_ptr(), rows.data_ptr(), *logits.shape,
    )  # fmt: skip
    normaliser: Tensor = largest + total.log()
    return normaliser


_softmax_gradient_ = torch.library.custom_op("nmt::softmax_gradient_", _compute_gradient_, mutates_args={"logits"})


@_softmax_gradient_.register_fake
def _(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    dtype = sum_dtype(logits)
    return logits.new_empty(len(logits), dtype=dtype), logits.new_empty(len(logits), dtype=dtype)
