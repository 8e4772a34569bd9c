"""Kernels of residual connections, norms and rotations: a program normalises whole rows, one after the other.

Statistics and sums are in float32, whatever the precision of the stream. Each operation reads its inputs once and
writes its results once. A dropout mask is computed from a seed, the place of the dropout in the model (its site) and
the index of the coordinate, and on nothing else, so that backward computes it again. It also computes the normalised
sum again: its inputs exist anyway, so that storing the sum or its statistics would only write more.
"""

from typing import Any, NamedTuple, cast

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from nmt.model.attention import with_adjacent_heads
from nmt.model.dropout import Dropout

NORM_PROGRAMS = 2048
"""Programs of the backward pass; each adds up the gradients of gain and bias over its share of the rows."""
BLOCK = 1024
"""Coordinates per program where rows do not matter."""
LEVELS = 1 << 31
"""Probabilities are rounded to this many levels."""
ROTATED_TOKENS = 16
"""Tokens per program that rotates heads."""


class Draw(NamedTuple):
    """What decides which coordinates a dropout keeps."""

    rate: float = 0.0
    seed: Tensor | None = None
    """int64 (1,) on the device."""
    site: int = 0
    """Tells one dropout of the model from the others."""

    @classmethod
    def of(cls, dropout: Dropout) -> "Draw":
        """Return what decides about a dropout now."""
        return cls(dropout.rate, dropout.seed, dropout.site)

    @property
    def arguments(self) -> tuple[Tensor | None, int, int, float]:
        """The arguments of kernels: seed, site, the smallest number below LEVELS that keeps a coordinate, factor."""
        return self.seed, self.site, round(self.rate * LEVELS), 1 / (1 - self.rate)


def dropout_add(stream: Tensor, branch: Tensor, dropout: Dropout) -> Tensor:
    """Return stream + Dropout(branch), both (..., d), in the stream's precision."""
    return cast(Tensor, _Add.apply(stream, branch, Draw.of(dropout)))


def residual_norm(stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module, *, keep_sum: bool) -> Any:
    """Return norm(stream + Dropout(branch)), both (..., d); with `keep_sum`, after the sum itself."""
    return _Norm.apply(stream, branch, *_parameters(norm), Draw.of(dropout), keep_sum)


def norm(stream: Tensor, norm: nn.Module) -> Tensor:
    """Return the norm of a stream (..., d)."""
    return cast(Tensor, _Norm.apply(stream, None, *_parameters(norm), Draw(), False))


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Rotate pairs of coordinates of heads (T, h, d), given the sinusoids (T, d) of the tokens' positions."""
    return cast(Tensor, _Rotation.apply(heads, rotation))


def _parameters(norm: nn.Module) -> tuple[Tensor, Tensor | None, float]:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    return norm.weight, getattr(norm, "bias", None), torch.finfo(torch.float32).eps if norm.eps is None else norm.eps


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, stream: Tensor, branch: Tensor | None, gain: Tensor, bias: Tensor | None, eps: float, draw: Draw,
        keep_sum: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        stream, branch = stream.contiguous(), None if branch is None else branch.contiguous()
        normed, added = torch.empty_like(stream), torch.empty_like(stream) if keep_sum else None
        width = stream.shape[-1]
        if rows := stream.numel() // width:
            _norm_forward[(rows,)](
                normed, added, stream, branch, gain, bias, *draw.arguments, eps,
                width=width, block=triton.next_power_of_2(width), add=branch is not None, dropout=draw.rate > 0,
                keep_sum=keep_sum, centre=bias is not None, num_warps=_warps(width),
            )  # fmt: skip
        ctx.options = eps, draw, branch is not None, bias is not None
        if added is None:
            ctx.save_for_backward(stream, branch, gain)
            return normed
        ctx.save_for_backward(added, None, gain)
        return added, normed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        stream, branch, gain = ctx.saved_tensors  # with a kept sum, that is the stream
        eps, draw, has_branch, has_bias = ctx.options
        *of_sum, gradient = (each.contiguous() for each in gradients)
        to_stream, to_branch = torch.empty_like(stream), torch.empty_like(stream) if has_branch else None
        rows, width = stream.flatten(0, -2).shape
        programs = min(rows, NORM_PROGRAMS)
        partial_sums = torch.empty(programs, 2, width, dtype=torch.float32, device=stream.device)
        if rows:
            _norm_backward[(programs,)](
                to_stream, to_branch, partial_sums, gradient, of_sum[0] if of_sum else None, stream, branch, gain,
                *draw.arguments, eps, rows,
                width=width, block=triton.next_power_of_2(width), add=branch is not None, dropout=draw.rate > 0,
                kept_sum=bool(of_sum), split=has_branch, centre=has_bias, num_warps=_warps(width),
            )  # fmt: skip
        to_gain, to_bias = partial_sums.sum(0).to(gain.dtype).unbind()
        return to_stream, to_branch, to_gain, to_bias if has_bias else None, None, None, None


class _Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stream: Tensor, branch: Tensor, draw: Draw) -> Tensor:
        ctx.dtype, ctx.draw = branch.dtype, draw
        return _dropped_sum(stream.contiguous(), branch, draw, stream.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        draw: Draw = ctx.draw
        return gradient, _dropped_sum(None, gradient, draw, ctx.dtype) if draw.rate else gradient.to(ctx.dtype), None


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: Tensor, rotation: Tensor) -> Tensor:
        ctx.save_for_backward(rotation)
        return _rotated(heads, rotation, 1.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (rotation,) = ctx.saved_tensors
        return _rotated(gradient, rotation, -1.0), None


def _dropped_sum(stream: Tensor | None, branch: Tensor, draw: Draw, dtype: torch.dtype) -> Tensor:
    """Return Dropout(branch), added to the stream if there is one."""
    branch = branch.contiguous()
    output = torch.empty_like(branch, dtype=dtype)
    if count := output.numel():
        options = {"block": BLOCK, "dropout": draw.rate > 0, "add": stream is not None}
        _dropout[(triton.cdiv(count, BLOCK),)](output, stream, branch, *draw.arguments, count, **options)
    return output


def _rotated(heads: Tensor, rotation: Tensor, sign: float) -> Tensor:
    """Return heads whose pairs of coordinates are rotated, with sign -1 backwards."""
    heads, rotation = with_adjacent_heads(heads), rotation.contiguous()
    turned = heads.new_empty(heads.shape)
    tokens, count, width = heads.shape
    if tokens:
        _rotate[(triton.cdiv(tokens, ROTATED_TOKENS), count)](
            turned, heads, rotation, heads.stride(0), tokens, sign,
            count=count, half=width // 2, block=triton.next_power_of_2(width // 2), block_tokens=ROTATED_TOKENS,
        )  # fmt: skip
    return turned


def _warps(width: int) -> int:
    """Return the number of warps for rows of this width.

    Sums over a row within one warp wait for nobody: on an H200, one warp instead of four takes 67 instead of 118 μs for
    the backward pass of 25,000 rows of 512.
    """
    return 1 if width <= 512 else 2 if width <= 1024 else 4 if width <= 2048 else 8


@triton.jit
def _mix(word):
    """Mix the bits of a number of 32 bits, so that each depends on all (Wellons' lowbias32)."""
    word = (word ^ (word >> 16)) * 0x7FEB352D
    word = (word ^ (word >> 15)) * 0x846CA68B
    return word ^ (word >> 16)


@triton.jit
def _dropped(branch, index, seed, site, threshold, scale):
    """Return Dropout(branch); the index is that of the coordinate in the whole tensor."""
    word = tl.load(seed)
    first = _mix(word.to(tl.uint32) ^ _mix(tl.cast(site, tl.uint32)))
    second = _mix((word >> 32).to(tl.uint32) ^ first)
    bits = _mix(_mix(index.to(tl.uint32) ^ first) ^ second)
    return tl.where((bits >> 1).to(tl.int32) >= threshold, branch * scale, 0.0)


@triton.jit
def _row(stream, branch, index, inside, seed, site, threshold, scale, add: tl.constexpr, dropout: tl.constexpr):
    """Return a row of the stream, or of its sum with Dropout(branch)."""
    row = tl.load(stream + index, mask=inside, other=0.0).to(tl.float32)
    if add:
        added = tl.load(branch + index, mask=inside, other=0.0).to(tl.float32)
        if dropout:
            added = _dropped(added, index, seed, site, threshold, scale)
        row += added
    return row


@triton.jit
def _normalise(row, inside, eps, width: tl.constexpr, centre: tl.constexpr):
    """Return the normalised row, and the factor that it was scaled by; only LayerNorm subtracts the mean."""
    if centre:
        row = tl.where(inside, row - tl.sum(row, 0) / width, 0.0)
    scale = 1 / tl.sqrt(tl.sum(row * row, 0) / width + eps)
    return row * scale, scale


@triton.jit
def _norm_forward(
    normed, added, stream, branch, gain, bias, seed, site, threshold, scale, eps,
    width: tl.constexpr, block: tl.constexpr, add: tl.constexpr, dropout: tl.constexpr, keep_sum: tl.constexpr,
    centre: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, block)
    inside = column < width
    index = tl.program_id(0).to(tl.int64) * width + column
    row = _row(stream, branch, index, inside, seed, site, threshold, scale, add, dropout)
    if keep_sum:
        rounded = row.to(added.dtype.element_ty)
        tl.store(added + index, rounded, mask=inside)
        row = rounded.to(tl.float32)  # backward reads the rounded sum
    result, _ = _normalise(row, inside, eps, width, centre)
    result *= tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    if centre:
        result += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + index, result.to(normed.dtype.element_ty), mask=inside)


@triton.jit
def _norm_backward(
    to_stream, to_branch, partial_sums, gradient, of_sum, stream, branch, gain, seed, site, threshold, scale, eps, rows,
    width: tl.constexpr, block: tl.constexpr, add: tl.constexpr, dropout: tl.constexpr, kept_sum: tl.constexpr,
    split: tl.constexpr, centre: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < width
    factor = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    to_gain = tl.zeros([block], dtype=tl.float32)
    to_bias = tl.zeros([block], dtype=tl.float32)
    for each in range(program, rows, tl.num_programs(0)):
        index = tl.cast(each, tl.int64) * width + column
        row = _row(stream, branch, index, inside, seed, site, threshold, scale, add, dropout)
        normalised, normaliser = _normalise(row, inside, eps, width, centre)
        upstream = tl.load(gradient + index, mask=inside, other=0.0).to(tl.float32)
        to_gain += upstream * normalised
        to_bias += upstream
        upstream *= factor
        result = upstream - tl.sum(upstream * normalised, 0) / width * normalised
        if centre:
            result -= tl.sum(upstream, 0) / width
        result *= normaliser
        if kept_sum:
            result += tl.load(of_sum + index, mask=inside, other=0.0).to(tl.float32)
        tl.store(to_stream + index, result.to(to_stream.dtype.element_ty), mask=inside)
        if split:
            if dropout:
                result = _dropped(result, index, seed, site, threshold, scale)
            tl.store(to_branch + index, result.to(to_branch.dtype.element_ty), mask=inside)
    tl.store(partial_sums + program * 2 * width + column, to_gain, mask=inside)
    tl.store(partial_sums + (program * 2 + 1) * width + column, to_bias, mask=inside)


@triton.jit
def _rotate(
    turned, heads, rotation, stride, tokens, sign,
    count: tl.constexpr, half: tl.constexpr, block: tl.constexpr, block_tokens: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0) * block_tokens + tl.arange(0, block_tokens)[:, None]
    pair = tl.arange(0, block)[None, :]
    inside = (token < tokens) & (pair < half)
    token = token.to(tl.int64)
    angle = rotation + token * 2 * half + 2 * pair
    sine = tl.load(angle, mask=inside, other=0.0).to(tl.float32) * sign
    cosine = tl.load(angle + 1, mask=inside, other=0.0).to(tl.float32)
    place = tl.program_id(1) * 2 * half + 2 * pair
    even = tl.load(heads + token * stride + place, mask=inside, other=0.0).to(tl.float32)
    odd = tl.load(heads + token * stride + place + 1, mask=inside, other=0.0).to(tl.float32)
    to = turned + token * count * 2 * half + place
    tl.store(to, (even * cosine - odd * sine).to(turned.dtype.element_ty), mask=inside)
    tl.store(to + 1, (even * sine + odd * cosine).to(turned.dtype.element_ty), mask=inside)


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
