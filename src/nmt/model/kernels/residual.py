"""The residual connection in one pass: stream + Dropout(branch), with or without the LayerNorm after it.

Statistics and sums are in float32, whatever the precision of the stream. Each operation reads its inputs once and
writes its result once. The dropout mask is computed again in the backward pass (`random_masks`), and so is the
normalised sum: both inputs exist anyway, so that storing the sum or its statistics would only write more.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nmt.model.kernels.backend import is_traced, launched_directly, sum_dtype, uses_triton
from nmt.model.kernels.random_masks import keep_mask


def dropout_add_norm(
    stream: Tensor,
    branch: Tensor,
    gain: Tensor,
    bias: Tensor,
    probability: float,
    seed: Tensor,
    site: int,
    eps: float = 1e-5,
) -> Tensor:
    """Return LayerNorm(stream + Dropout(branch)), both (..., d), with gain and bias (d,), in the stream's precision.

    `seed` is an int64 tensor (1,) on the same device, and `site` tells one dropout of the model from the others. A
    probability of 0 means no dropout.
    """
    call: Callable[..., Tensor] = torch.ops.nmt.dropout_add_norm if is_traced() else _launch_dropout_add_norm
    normed: Tensor = call(stream, branch, gain, bias, probability, seed, site, eps)
    return normed


def dropout_add(stream: Tensor, branch: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    """Return stream + Dropout(branch), both (..., d), in the stream's precision; see `dropout_add_norm`."""
    call: Callable[..., Tensor] = torch.ops.nmt.dropout_add if is_traced() else _launch_dropout_add
    added: Tensor = call(stream, branch, probability, seed, site)
    return added


def _compute_norm(
    stream: Tensor,
    branch: Tensor,
    gain: Tensor,
    bias: Tensor,
    probability: float,
    seed: Tensor,
    site: int,
    eps: float,
) -> Tensor:
    if uses_triton(stream):
        from nmt.model.kernels import triton_residual  # noqa: PLC0415 - imports Triton

        return triton_residual.dropout_add_norm(stream, branch, gain, bias, probability, seed, site, eps)
    exact = sum_dtype(stream)
    added = _add(stream.to(exact), branch.to(exact), probability, seed, site)
    return torch.layer_norm(added, gain.shape, gain.to(exact), bias.to(exact), eps).to(stream.dtype)


def _compute_norm_backward(
    gradient: Tensor,
    stream: Tensor,
    branch: Tensor,
    gain: Tensor,
    probability: float,
    seed: Tensor,
    site: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if uses_triton(stream):
        from nmt.model.kernels import triton_residual  # noqa: PLC0415 - imports Triton

        return triton_residual.dropout_add_norm_backward(gradient, stream, branch, gain, probability, seed, site, eps)
    exact = sum_dtype(stream)
    gradient = gradient.to(exact)
    added = _add(stream.to(exact), branch.to(exact), probability, seed, site)
    variance, mean = torch.var_mean(added, -1, correction=0, keepdim=True)
    scale = (variance + eps).rsqrt()
    normalised = (added - mean) * scale
    grad_normalised = gradient * gain.to(exact)
    along = (grad_normalised * normalised).mean(-1, keepdim=True)
    grad_added = (grad_normalised - grad_normalised.mean(-1, keepdim=True) - along * normalised) * scale
    rows = tuple(range(gradient.dim() - 1))
    return (
        grad_added.to(stream.dtype, copy=True),
        _dropped(grad_added, probability, seed, site).to(branch.dtype, copy=True),
        (gradient * normalised).sum(rows).to(gain.dtype),
        gradient.sum(rows).to(gain.dtype),
    )


def _compute_add(stream: Tensor, branch: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    if uses_triton(stream):
        from nmt.model.kernels import triton_residual  # noqa: PLC0415 - imports Triton

        return triton_residual.dropout_add(stream, branch, probability, seed, site)
    exact = sum_dtype(stream)
    return _add(stream.to(exact), branch.to(exact), probability, seed, site).to(stream.dtype)


def _compute_dropout_backward(
    gradient: Tensor, dtype: torch.dtype, probability: float, seed: Tensor, site: int
) -> Tensor:
    if uses_triton(gradient):
        from nmt.model.kernels import triton_residual  # noqa: PLC0415 - imports Triton

        return triton_residual.dropout_backward(gradient, dtype, probability, seed, site)
    return _dropped(gradient.to(sum_dtype(gradient)), probability, seed, site).to(dtype, copy=True)


_dropout_add_norm = torch.library.custom_op("nmt::dropout_add_norm", _compute_norm, mutates_args=())
_dropout_add_norm_backward = torch.library.custom_op(
    "nmt::dropout_add_norm_backward", _compute_norm_backward, mutates_args=()
)
_dropout_add = torch.library.custom_op("nmt::dropout_add", _compute_add, mutates_args=())
_dropout_backward = torch.library.custom_op("nmt::dropout_backward", _compute_dropout_backward, mutates_args=())


@_dropout_add_norm.register_fake
def _(stream: Tensor, *_others: Any) -> Tensor:
    return stream.new_empty(stream.shape)


@_dropout_add_norm_backward.register_fake
def _(
    _gradient: Tensor, stream: Tensor, branch: Tensor, gain: Tensor, *_others: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        stream.new_empty(stream.shape),
        branch.new_empty(branch.shape),
        torch.empty_like(gain),
        torch.empty_like(gain),
    )


@_dropout_add.register_fake
def _(stream: Tensor, *_others: Any) -> Tensor:
    return stream.new_empty(stream.shape)


@_dropout_backward.register_fake
def _(gradient: Tensor, dtype: torch.dtype, *_others: Any) -> Tensor:
    return gradient.new_empty(gradient.shape, dtype=dtype)


def _save_for_norm(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    stream, branch, gain, _, ctx.probability, seed, ctx.site, ctx.eps = inputs
    ctx.save_for_backward(stream, branch, gain, seed)


def _norm_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    stream, branch, gain, seed = ctx.saved_tensors
    call = torch.ops.nmt.dropout_add_norm_backward if is_traced() else _compute_norm_backward
    gradients = call(gradient, stream, branch, gain, ctx.probability, seed, ctx.site, ctx.eps)
    return *gradients, None, None, None, None


def _save_for_add(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, branch, ctx.probability, seed, ctx.site = inputs
    ctx.branch_dtype = branch.dtype
    ctx.save_for_backward(seed)


def _add_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    (seed,) = ctx.saved_tensors
    if not ctx.probability:
        return gradient, gradient.to(ctx.branch_dtype), None, None, None
    call = torch.ops.nmt.dropout_backward if is_traced() else _compute_dropout_backward
    grad_branch = call(gradient, ctx.branch_dtype, ctx.probability, seed, ctx.site)
    return gradient, grad_branch, None, None, None


_dropout_add_norm.register_autograd(_norm_gradients, setup_context=_save_for_norm)
_dropout_add.register_autograd(_add_gradients, setup_context=_save_for_add)
_launch_dropout_add_norm = launched_directly(_compute_norm, _save_for_norm, _norm_gradients)
_launch_dropout_add = launched_directly(_compute_add, _save_for_add, _add_gradients)


def _add(stream: Tensor, branch: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    return stream + _dropped(branch, probability, seed, site)


def _dropped(branch: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    if not probability:
        return branch
    return branch * keep_mask(branch, probability, seed, site) * (1 / (1 - probability))
