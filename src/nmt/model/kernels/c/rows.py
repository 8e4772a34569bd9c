"""What the operations in C compute for each token on its own, in one pass each. Widths are multiples of LANES."""

from typing import Any, cast

import torch
from torch import Tensor

from nmt.model.kernels.c.library import LANES, Draws, buffers, library


def drop(stream: Tensor, draws: Draws) -> Tensor:
    """Return Dropout(stream)."""
    return cast(Tensor, _Added.apply(None, stream, draws))  # type: ignore[no-untyped-call]


def add_dropped(stream: Tensor, branch: Tensor, draws: Draws) -> Tensor:
    """Return stream + Dropout(branch), both (..., d)."""
    return cast(Tensor, _Added.apply(stream, branch, draws))  # type: ignore[no-untyped-call]


def add_norm(stream: Tensor, branch: Tensor, norm: torch.nn.LayerNorm, draws: Draws) -> Tensor:
    """Return LayerNorm(stream + Dropout(branch)), both (..., d)."""
    arguments = stream, branch, norm.weight, norm.bias, norm.eps, draws
    return cast(Tensor, _Normed.apply(*arguments))  # type: ignore[no-untyped-call]


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stream: Tensor | None, branch: Tensor, draws: Draws) -> Tensor:
        ctx.draws, ctx.has_stream = draws, stream is not None
        return _added(stream, branch, draws)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        return gradient if ctx.has_stream else None, _added(None, gradient, ctx.draws), None


def _added(stream: Tensor | None, branch: Tensor, draws: Draws) -> Tensor:
    stream, branch = None if stream is None else stream.contiguous(), branch.contiguous()
    added = torch.empty_like(branch)
    inputs = None if stream is None else stream.data_ptr(), branch.data_ptr()
    library(branch).add_dropped(*inputs, draws, added.data_ptr(), branch.numel())
    return added


class _Normed(torch.autograd.Function):
    """Computes the normalised sum again in backward: both inputs exist anyway."""

    @staticmethod
    def forward(
        ctx: Any, stream: Tensor, branch: Tensor, gain: Tensor, bias: Tensor, eps: float, draws: Draws
    ) -> Tensor:
        stream, branch = stream.contiguous(), branch.contiguous()
        ctx.save_for_backward(stream, branch, gain)
        ctx.eps, ctx.draws = eps, draws
        normed, rows = torch.empty_like(stream), buffers(len(gain))
        library(stream).add_norm(
            stream.data_ptr(), branch.data_ptr(), draws, gain.data_ptr(), bias.data_ptr(), eps,
            normed.data_ptr(), rows.data_ptr(), stream.numel() // len(gain), len(gain),
        )  # fmt: skip
        return normed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        stream, branch, gain = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_stream, to_branch = torch.empty_like(stream), torch.empty_like(branch)
        sums = buffers(3 * len(gain)).zero_()  # of each thread: for gain and bias, and room for a row
        library(stream).add_norm_backward(
            gradient.data_ptr(), stream.data_ptr(), branch.data_ptr(), ctx.draws, gain.data_ptr(), ctx.eps,
            to_stream.data_ptr(), to_branch.data_ptr(), sums.data_ptr(), stream.numel() // len(gain), len(gain),
        )  # fmt: skip
        to_gain, to_bias, _ = sums.sum(0).chunk(3)
        return to_stream, to_branch, to_gain, to_bias, None, None


def sum_rows(rows: Tensor) -> Tensor:
    """Return the sum of the rows (T, d) in float32: (d,)."""
    rows = rows.contiguous()
    sums = torch.empty(rows.shape[1])
    library(rows).sum_rows(rows.data_ptr(), sums.data_ptr(), *rows.shape)
    return sums


def rectifier_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of x (T, d) and its sum over the rows (d,), given that of relu(x), and relu(x) itself."""
    gradient, rectified = gradient.contiguous(), rectified.contiguous()
    kept, sums = torch.empty_like(gradient), torch.empty(gradient.shape[1])
    tensors = (each.data_ptr() for each in (gradient, rectified, kept, sums))
    library(gradient).rectifier_gradient(*tensors, *gradient.shape)
    return kept, sums


def softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Replace logits (T, V) of any width by softmax(logits), minus 1 - smoothing at each row's label (T,).

    Return the log-sum-exp of each row and the label's logit, both (T,) in float32.
    """
    label_logit = logits.gather(-1, labels[:, None])[:, 0].to(torch.float32, copy=True)
    labels = labels.contiguous()
    largest, total = torch.empty(2, len(logits))
    rows = buffers(logits.shape[-1] + LANES)
    library(logits).softmax_gradient(
        logits.data_ptr(), labels.data_ptr(), smoothing,
        largest.data_ptr(), total.data_ptr(), rows.data_ptr(), *logits.shape,
    )  # fmt: skip
    return largest + total.log(), label_logit
