"""Attention within the sentences of packed streams, and rotations of heads, by the operations in C.

There is no padding: one sentence and head is computed at a time, in float32, while it is in the cache.
"""

import ctypes
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from nmt.model.kernels.c.library import LANES, Attention, Stream, buffers, library


class Sentences(NamedTuple):
    """Where the sentences of both streams begin and end, and how they attend."""

    query_offsets: Tensor
    """(B + 1,) int32: sentence b is the tokens from offsets[b] to offsets[b + 1]."""
    key_offsets: Tensor
    longest: int
    """No sentence is longer than this."""
    causal: bool
    """Whether no query sees later keys."""
    scale: float
    """The factor of the scores."""


def attend(queries: Tensor, keys: Tensor, values: Tensor, sentences: Sentences) -> Tensor:
    """Attend from queries (Tq, h, d_k) to keys (Tk, h_kv, d_k) and values (Tk, h_kv, d_v): (Tq, h, d_v).

    All are in bf16 or float32, and widths are multiples of LANES.
    """
    return cast(Tensor, _Attention.apply(queries, keys, values, sentences))  # type: ignore[no-untyped-call]


def rotate(heads: Tensor, sinusoids: Tensor) -> Tensor:
    """Rotate pairs of coordinates of heads (T, h, d), given the sinusoids (T, d) of the tokens' positions."""
    return cast(Tensor, _Rotation.apply(heads, sinusoids))  # type: ignore[no-untyped-call]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, sentences: Sentences) -> Tensor:
        queries, keys, values = map(_with_whole_tokens, (queries, keys, values))
        ctx.save_for_backward(queries, keys, values)
        ctx.sentences = sentences
        attended = queries.new_empty(*queries.shape[:2], values.shape[2])
        plan, scratch = _plan(queries, keys, values, sentences), _scratch(queries, values, sentences)
        library(queries).attend(ctypes.byref(plan), attended.data_ptr(), scratch.data_ptr(), scratch.shape[1])
        return attended

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values = ctx.saved_tensors
        gradient, sentences = gradient.contiguous(), ctx.sentences
        if sentences.query_offsets is sentences.key_offsets:
            gradients = _side_by_side(queries, keys, values)
        else:
            gradients = [torch.empty_like(queries), *_side_by_side(keys, values)]
        plan, scratch = _plan(queries, keys, values, sentences), _scratch(queries, values, sentences)
        library(queries).attend_backward(
            ctypes.byref(plan), gradient.data_ptr(), *map(Stream.of, gradients), scratch.data_ptr(), scratch.shape[1]
        )
        return *gradients, None


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: Tensor, sinusoids: Tensor) -> Tensor:
        ctx.save_for_backward(sinusoids)
        return _rotated(heads, sinusoids, sign=1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (sinusoids,) = ctx.saved_tensors
        return _rotated(gradient, sinusoids, sign=-1), None


def _plan(queries: Tensor, keys: Tensor, values: Tensor, sentences: Sentences) -> Attention:
    heads, offsets = queries.shape[1], (sentences.query_offsets, sentences.key_offsets)
    return Attention(
        *map(Stream.of, (queries, keys, values)),
        *(each.data_ptr() for each in offsets),
        len(offsets[0]) - 1,
        heads,
        heads // keys.shape[1],
        sentences.causal,
        sentences.scale,
    )


def _rotated(heads: Tensor, sinusoids: Tensor, sign: int) -> Tensor:
    heads = _with_whole_tokens(heads)
    rotated = heads.new_empty(heads.shape)
    addresses = heads.data_ptr(), heads.stride(0), sinusoids.data_ptr(), sign, rotated.data_ptr()
    library(heads).rotate(*addresses, *heads.shape)
    return rotated


def _with_whole_tokens(heads: Tensor) -> Tensor:
    """Return heads (T, h, d) in which the numbers of a token are adjacent: the same tensor, if possible."""
    return heads if heads.stride()[1:] == (heads.shape[2], 1) else heads.contiguous()


def _side_by_side(*streams: Tensor) -> list[Tensor]:
    """Return room for heads (T, h, d) of several streams in one matrix, as if one product had computed them."""
    shapes = [heads.shape[1:] for heads in streams]
    matrix = streams[0].new_empty(len(streams[0]), sum(map(torch.Size.numel, shapes)))
    parts = matrix.split([shape.numel() for shape in shapes], -1)
    return [part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True)]


def _scratch(queries: Tensor, values: Tensor, sentences: Sentences) -> Tensor:
    """Return room for the matrices of the longest sentence, whose length is rounded up, for each thread."""
    length = -(-sentences.longest // LANES) * LANES
    return buffers(length * (5 * queries.shape[2] + 4 * values.shape[2] + 2 * length))
