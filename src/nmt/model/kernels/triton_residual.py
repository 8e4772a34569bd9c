"""Triton kernels of `residual`: a program normalises whole rows, one after the other."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nmt.model.kernels.random_masks import threshold

NORM_PROGRAMS = 2048
"""Programs of the backward pass; each adds up the gradients of gain and bias over its share of the rows."""
BLOCK = 1024
"""Coordinates per program where rows do not matter."""


def dropout_add_norm(
    stream: Tensor, branch: Tensor, gain: Tensor, bias: Tensor, probability: float, seed: Tensor, site: int, eps: float
) -> Tensor:
    """See `residual`."""
    stream, branch = stream.contiguous(), branch.contiguous()
    output = torch.empty_like(stream)
    width = stream.shape[-1]
    rows = stream.numel() // width
    if rows:
        _norm_forward[(rows,)](
            output, stream, branch, gain, bias, seed, site, threshold(probability), 1 / (1 - probability), eps,
            width=width, block=triton.next_power_of_2(width), dropout=probability > 0, num_warps=_warps(width),
        )  # fmt: skip
    return output


def dropout_add_norm_backward(
    gradient: Tensor,
    stream: Tensor,
    branch: Tensor,
    gain: Tensor,
    probability: float,
    seed: Tensor,
    site: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `residual`."""
    gradient, stream, branch = gradient.contiguous(), stream.contiguous(), branch.contiguous()
    grad_stream, grad_branch = torch.empty_like(stream), torch.empty_like(branch)
    width = stream.shape[-1]
    rows = stream.numel() // width
    programs = min(rows, NORM_PROGRAMS)
    partial_sums = torch.empty(programs, 2, width, dtype=torch.float32, device=stream.device)
    if rows:
        _norm_backward[(programs,)](
            grad_stream, grad_branch, partial_sums, gradient, stream, branch, gain, seed, site,
            threshold(probability), 1 / (1 - probability), eps, rows,
            width=width, block=triton.next_power_of_2(width), dropout=probability > 0, num_warps=_warps(width),
        )  # fmt: skip
    grad_gain, grad_bias = partial_sums.sum(0).to(gain.dtype).unbind()
    return grad_stream, grad_branch, grad_gain.clone(), grad_bias.clone()


def dropout_add(stream: Tensor, branch: Tensor, probability: float, seed: Tensor, site: int) -> Tensor:
    """See `residual`."""
    stream = stream.contiguous()
    output = torch.empty_like(stream)
    _launch_dropout(output, stream, branch.contiguous(), probability, seed, site)
    return output


def dropout_backward(gradient: Tensor, dtype: torch.dtype, probability: float, seed: Tensor, site: int) -> Tensor:
    """See `residual`."""
    gradient = gradient.contiguous()
    output = torch.empty_like(gradient, dtype=dtype)
    _launch_dropout(output, None, gradient, probability, seed, site)
    return output


def _launch_dropout(
    output: Tensor, stream: Tensor | None, branch: Tensor, probability: float, seed: Tensor, site: int
) -> None:
    count = output.numel()
    if count:
        _dropout[(triton.cdiv(count, BLOCK),)](
            output, branch if stream is None else stream, branch, seed, site, threshold(probability),
            1 / (1 - probability), count, block=BLOCK, dropout=probability > 0, add=stream is not None,
        )  # fmt: skip


def _warps(width: int) -> int:
    """Return the number of warps for rows of this width.

    Sums over a row within one warp wait for nobody: on an H200, one warp instead of four takes 67 instead of 118 μs for
    the backward pass of 25,000 rows of 512.
    """
    return 1 if width <= 512 else 2 if width <= 1024 else 4 if width <= 2048 else 8


@triton.jit
def _mix(word):
    """See `random_masks.mix`."""
    word = (word ^ (word >> 16)) * 0x7FEB352D
    word = (word ^ (word >> 15)) * 0x846CA68B
    return word ^ (word >> 16)


@triton.jit
def _dropped(branch, index, seed, site, threshold, scale):
    """See `random_masks.keep_mask`; the index is that of the coordinate in the whole tensor."""
    word = tl.load(seed)
    first = _mix(word.to(tl.uint32) ^ _mix(tl.cast(site, tl.uint32)))
    second = _mix((word >> 32).to(tl.uint32) ^ first)
    bits = _mix(_mix(index.to(tl.uint32) ^ first) ^ second)
    return tl.where((bits >> 1).to(tl.int32) >= threshold, branch * scale, 0.0)


@triton.jit
def _sum_of_row(
    stream, branch, row, column, inside, seed, site, threshold, scale, width: tl.constexpr, dropout: tl.constexpr
):
    index = row * width + column
    added = tl.load(branch + index, mask=inside, other=0.0).to(tl.float32)
    if dropout:
        added = _dropped(added, index, seed, site, threshold, scale)
    return added + tl.load(stream + index, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _normalise(added, inside, eps, width: tl.constexpr):
    """Return the normalised row, and the factor that it was scaled by."""
    centred = tl.where(inside, added - tl.sum(added, 0) / width, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / width + eps)
    return centred * scale, scale


@triton.jit
def _norm_forward(
    output, stream, branch, gain, bias, seed, site, threshold, scale, eps,
    width: tl.constexpr, block: tl.constexpr, dropout: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, block)
    inside = column < width
    added = _sum_of_row(stream, branch, row, column, inside, seed, site, threshold, scale, width, dropout)
    normalised, _ = _normalise(added, inside, eps, width)
    normed = normalised * tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    normed += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + row * width + column, normed.to(output.dtype.element_ty), mask=inside)


@triton.jit
def _norm_backward(
    grad_stream, grad_branch, partial_sums, gradient, stream, branch, gain, seed, site, threshold, scale, eps, rows,
    width: tl.constexpr, block: tl.constexpr, dropout: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < width
    factor = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    grad_gain = tl.zeros([block], dtype=tl.float32)
    grad_bias = tl.zeros([block], dtype=tl.float32)
    for each in range(program, rows, tl.num_programs(0)):
        row = tl.cast(each, tl.int64)
        index = row * width + column
        added = _sum_of_row(stream, branch, row, column, inside, seed, site, threshold, scale, width, dropout)
        normalised, normaliser = _normalise(added, inside, eps, width)
        upstream = tl.load(gradient + index, mask=inside, other=0.0).to(tl.float32)
        grad_gain += upstream * normalised
        grad_bias += upstream
        upstream *= factor
        along = tl.sum(upstream * normalised, 0) / width
        grad_added = (upstream - tl.sum(upstream, 0) / width - along * normalised) * normaliser
        tl.store(grad_stream + index, grad_added.to(grad_stream.dtype.element_ty), mask=inside)
        if dropout:
            grad_added = _dropped(grad_added, index, seed, site, threshold, scale)
        tl.store(grad_branch + index, grad_added.to(grad_branch.dtype.element_ty), mask=inside)
    tl.store(partial_sums + program * 2 * width + column, grad_gain, mask=inside)
    tl.store(partial_sums + (program * 2 + 1) * width + column, grad_bias, mask=inside)


@triton.jit
def _dropout(
    output, stream, branch, seed, site, threshold, scale, count,
    block: tl.constexpr, dropout: tl.constexpr, add: tl.constexpr,
):  # fmt: skip
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < count
    value = tl.load(branch + index, mask=inside, other=0.0).to(tl.float32)
    if dropout:
        value = _dropped(value, index, seed, site, threshold, scale)
    if add:
        value += tl.load(stream + index, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + index, value.to(output.dtype.element_ty), mask=inside)
