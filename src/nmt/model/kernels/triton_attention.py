"""Triton kernels of `short_attention`: a program computes one head of one sentence, which is one tile."""

import math
import os
from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

HIDDEN = tl.constexpr(-1e30)
"""The score of a key that a query must not see: finite, so that a row without keys becomes zeros and not NaN."""
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
MIN_WIDTH = 16
"""The smallest width of a product on a GPU's matrix units."""


def short_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    query_tile: int,
    key_tile: int,
    causal: bool,
) -> Tensor:
    """See `short_attention`."""
    queries, keys, values = (_with_adjacent_heads(heads) for heads in (queries, keys, values))
    tokens, heads, key_width = queries.shape
    value_width = values.shape[2]
    attended = queries.new_empty(tokens, heads, value_width)
    _forward[(len(query_offsets) - 1, heads)](
        attended, queries, keys, values, query_offsets, key_offsets,
        queries.stride(0), keys.stride(0), values.stride(0), 1 / math.sqrt(key_width),
        heads=heads, shared=heads // keys.shape[1], key_width=key_width, value_width=value_width,
        key_block=_block(key_width), value_block=_block(value_width),
        query_tile=query_tile, key_tile=key_tile, causal=causal, num_warps=_warps(query_tile, key_tile),
    )  # fmt: skip
    return attended


def short_attention_backward(
    gradients: Sequence[Tensor],
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    query_tile: int,
    key_tile: int,
    causal: bool,
) -> None:
    """Write the gradients of queries, keys and values, whose heads are adjacent; see `short_attention`."""
    gradient, queries, keys, values = (_with_adjacent_heads(heads) for heads in (gradient, queries, keys, values))
    heads, key_heads, key_width, value_width = queries.shape[1], *keys.shape[1:], values.shape[2]
    _backward[(len(query_offsets) - 1, key_heads)](
        *gradients, gradient, queries, keys, values, query_offsets, key_offsets,
        *(each.stride(0) for each in (*gradients, gradient, queries, keys, values)), 1 / math.sqrt(key_width),
        heads=heads, shared=heads // key_heads, key_width=key_width, value_width=value_width,
        key_block=_block(key_width), value_block=_block(value_width),
        query_tile=query_tile, key_tile=key_tile, causal=causal, num_warps=_warps(query_tile, key_tile),
    )  # fmt: skip


def _with_adjacent_heads(heads: Tensor) -> Tensor:
    """Return (T, h, d) such that each token's heads are adjacent; only the distance between tokens is free."""
    return heads if heads.stride(2) == 1 and heads.stride(1) == heads.shape[2] else heads.contiguous()


def _block(width: int) -> int:
    return int(max(MIN_WIDTH, triton.next_power_of_2(width)))


def _warps(query_tile: int, key_tile: int) -> int:
    return max(query_tile, key_tile) // 16


@triton.jit
def _dot(left, right):
    if INTERPRETED:  # the interpreter would multiply the bits of bf16 numbers
        left, right = left.to(tl.float32), right.to(tl.float32)
    return tl.dot(left, right, input_precision="ieee")  # TF32 otherwise, if both are float32


@triton.jit
def _extent(offsets, sentence):
    """Return the first row of a sentence, and its number of rows."""
    start = tl.load(offsets + sentence)
    return start, tl.load(offsets + sentence + 1) - start


@triton.jit
def _load(heads, start, count, stride, head, width: tl.constexpr, block: tl.constexpr, tile: tl.constexpr):
    """Load one head of a sentence: (tile, block), with zeros after its end and beyond the width."""
    row = tl.arange(0, tile)[:, None]
    column = tl.arange(0, block)[None, :]
    place = (start + row).to(tl.int64) * stride + head * width + column
    return tl.load(heads + place, mask=(row < count) & (column < width), other=0.0)


@triton.jit
def _store(heads, rows, start, count, stride, head, width: tl.constexpr, block: tl.constexpr, tile: tl.constexpr):
    """Store what `_load` loads."""
    row = tl.arange(0, tile)[:, None]
    column = tl.arange(0, block)[None, :]
    place = (start + row).to(tl.int64) * stride + head * width + column
    tl.store(heads + place, rows.to(heads.dtype.element_ty), mask=(row < count) & (column < width))


@triton.jit
def _weights(query, key, key_count, scale, query_tile: tl.constexpr, key_tile: tl.constexpr, causal: tl.constexpr):
    """Return softmax(Q K^T scale) in float32: (query_tile, key_tile)."""
    scores = _dot(query, tl.trans(key)) * scale
    place = tl.arange(0, key_tile)[None, :]
    visible = place < key_count
    if causal:
        visible = visible & (place <= tl.arange(0, query_tile)[:, None])
    scores = tl.where(visible, scores, HIDDEN)
    exponentials = tl.exp(scores - tl.max(scores, 1)[:, None])
    return exponentials / tl.sum(exponentials, 1)[:, None]


@triton.jit
def _forward(
    attended, queries, keys, values, query_offsets, key_offsets, query_stride, key_stride, value_stride, scale,
    heads: tl.constexpr, shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    head = tl.program_id(1)
    query_start, query_count = _extent(query_offsets, sentence)
    key_start, key_count = _extent(key_offsets, sentence)
    if query_count > 0:
        query = _load(queries, query_start, query_count, query_stride, head, key_width, key_block, query_tile)
        key = _load(keys, key_start, key_count, key_stride, head // shared, key_width, key_block, key_tile)
        value = _load(values, key_start, key_count, value_stride, head // shared, value_width, value_block, key_tile)
        weights = _weights(query, key, key_count, scale, query_tile, key_tile, causal)
        result = _dot(weights.to(value.dtype), value)
        _store(
            attended, result, query_start, query_count, heads * value_width, head, value_width, value_block, query_tile
        )


@triton.jit
def _backward(
    grad_queries, grad_keys, grad_values, gradient, queries, keys, values, query_offsets, key_offsets,
    grad_query_stride, grad_key_stride, grad_value_stride,
    gradient_stride, query_stride, key_stride, value_stride, scale,
    heads: tl.constexpr, shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    key_head = tl.program_id(1)
    query_start, query_count = _extent(query_offsets, sentence)
    key_start, key_count = _extent(key_offsets, sentence)
    if query_count + key_count > 0:
        key = _load(keys, key_start, key_count, key_stride, key_head, key_width, key_block, key_tile)
        value = _load(values, key_start, key_count, value_stride, key_head, value_width, value_block, key_tile)
        grad_key = tl.zeros([key_tile, key_block], tl.float32)
        grad_value = tl.zeros([key_tile, value_block], tl.float32)
        for member in range(shared):
            head = key_head * shared + member
            query = _load(queries, query_start, query_count, query_stride, head, key_width, key_block, query_tile)
            upstream = _load(
                gradient, query_start, query_count, gradient_stride, head, value_width, value_block, query_tile
            )
            weights = _weights(query, key, key_count, scale, query_tile, key_tile, causal)
            grad_value += _dot(tl.trans(weights.to(value.dtype)), upstream)
            grad_weights = _dot(upstream, tl.trans(value))
            along = tl.sum(weights * grad_weights, 1)[:, None]
            grad_scores = (weights * (grad_weights - along) * scale).to(query.dtype)
            grad_query = _dot(grad_scores, key)
            grad_key += _dot(tl.trans(grad_scores), query)
            _store(
                grad_queries, grad_query, query_start, query_count, grad_query_stride, head,
                key_width, key_block, query_tile,
            )  # fmt: skip
        _store(grad_keys, grad_key, key_start, key_count, grad_key_stride, key_head, key_width, key_block, key_tile)
        _store(
            grad_values, grad_value, key_start, key_count, grad_value_stride, key_head,
            value_width, value_block, key_tile,
        )  # fmt: skip
