"""Attention within the sentences of packed streams, and rotations of heads, by the operations in C.

There is no padding: one sentence and head is computed at a time, in float32, while it is in the cache.
"""

import ctypes
import math
from typing import Any, cast

import torch
from torch import Tensor

from nmt.model.attention import AttentionSpec, ScoreBias, room_for_gradients, widen, with_adjacent_heads
from nmt.model.kernels.c.library import LANES, Attention, Stream, buffers, library


class AttendInC:
    """Plain attention, see `Attend`."""

    def __init__(self, spec: AttentionSpec) -> None:
        self.spec = spec

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        scale, d_v = 1 / math.sqrt(queries.shape[2]), values.shape[2]
        streams = (widen(each, LANES) for each in (queries, keys, values))  # whole vector registers
        attended = cast(Tensor, _Attention.apply(*streams, self.spec, scale))  # type: ignore[no-untyped-call]
        return attended[..., :d_v].flatten(-2)


def rotate(heads: Tensor, sinusoids: Tensor) -> Tensor:
    """Rotate pairs of coordinates of heads (T, h, d), given the sinusoids (T, d) of the tokens' positions."""
    return cast(Tensor, _Rotation.apply(heads, sinusoids))  # type: ignore[no-untyped-call]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, spec: AttentionSpec, scale: float) -> Tensor:
        queries, keys, values = map(with_adjacent_heads, (queries, keys, values))
        ctx.save_for_backward(queries, keys, values)
        ctx.spec, ctx.scale = spec, scale
        attended = queries.new_empty(*queries.shape[:2], values.shape[2])
        plan, scratch = _plan(queries, keys, values, spec, scale), _scratch(queries, values, spec)
        library(queries).attend(ctypes.byref(plan), attended.data_ptr(), scratch.data_ptr(), scratch.shape[1])
        return attended

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values = ctx.saved_tensors
        gradient, spec = gradient.contiguous(), ctx.spec
        gradients = room_for_gradients(spec, queries, keys, values)
        plan, scratch = _plan(queries, keys, values, spec, ctx.scale), _scratch(queries, values, spec)
        library(queries).attend_backward(
            ctypes.byref(plan), gradient.data_ptr(), *map(Stream.of, gradients), scratch.data_ptr(), scratch.shape[1]
        )
        return *gradients, None, None


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: Tensor, sinusoids: Tensor) -> Tensor:
        ctx.save_for_backward(sinusoids)
        return _rotated(heads, sinusoids, sign=1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (sinusoids,) = ctx.saved_tensors
        return _rotated(gradient, sinusoids, sign=-1), None


def _plan(queries: Tensor, keys: Tensor, values: Tensor, spec: AttentionSpec, scale: float) -> Attention:
    heads, offsets = queries.shape[1], (spec.queries.offsets, spec.keys.offsets)
    return Attention(
        *map(Stream.of, (queries, keys, values)),
        *(each.data_ptr() for each in offsets),
        len(offsets[0]) - 1,
        heads,
        heads // keys.shape[1],
        spec.causal,
        scale,
    )


def _rotated(heads: Tensor, sinusoids: Tensor, sign: int) -> Tensor:
    heads = with_adjacent_heads(heads)
    rotated = heads.new_empty(heads.shape)
    addresses = heads.data_ptr(), heads.stride(0), sinusoids.data_ptr(), sign, rotated.data_ptr()
    library(heads).rotate(*addresses, *heads.shape)
    return rotated


def _scratch(queries: Tensor, values: Tensor, spec: AttentionSpec) -> Tensor:
    """Return room for the matrices of the longest sentence, whose length is rounded up, for each thread."""
    length = -(-spec.longest // LANES) * LANES
    return buffers(length * (5 * queries.shape[2] + 4 * values.shape[2] + 2 * length))
