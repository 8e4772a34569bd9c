"""Attention within short sentences: a whole sentence of one head is one tile, so there is nothing to iterate over.

Flash attention computes tiles of 128 queries and 128 keys. Sentences have about 31 tokens, so that most of each tile is
thrown away. Here a tile has 32, 64 or 128 rows: the smallest that holds the sentence. The backward pass computes the
scores again from queries and keys, so the forward pass stores nothing for it.
"""

import math
import os
from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from nmt.model.attention import AttentionSpec, ScoreBias, room_for_gradients, with_adjacent_heads

TILES = (32, 64, 128)
"""Numbers of tokens that a tile can have."""
MAX_HEAD_WIDTH = 64
"""Widest head for which the largest tile fits into the shared memory of all GPUs (99 KiB on some)."""
HIDDEN = tl.constexpr(-1e30)
"""The score of a key that a query must not see: finite, so that a row without keys becomes zeros and not NaN."""
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
ROWS_PER_WARP = 16
MIN_WIDTH = 16
"""The smallest width of a product on a GPU's matrix units."""


class ShortAttend:
    """Plain attention within sentences of at most 128 tokens, see `Attend`."""

    def __init__(self, spec: AttentionSpec) -> None:
        self.spec = spec

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`; queries, keys and values may be views with any distance between tokens."""
        streams = queries, keys.to(queries.dtype), values.to(queries.dtype)
        return cast(Tensor, _Attention.apply(*streams, self.spec)).flatten(-2)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, spec: AttentionSpec) -> Tensor:
        inputs = [with_adjacent_heads(heads) for heads in (queries, keys, values)]
        ctx.save_for_backward(*inputs)
        ctx.spec = spec
        attended = queries.new_empty(*queries.shape[:2], values.shape[2])
        _forward[(spec.queries.sentences, queries.shape[1])](
            attended, *inputs, spec.queries.offsets, spec.keys.offsets, *(each.stride(0) for each in inputs),
            **_options(spec, *inputs),
        )  # fmt: skip
        return attended

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        spec, inputs = ctx.spec, ctx.saved_tensors
        gradients = room_for_gradients(spec, *inputs)
        tensors = *gradients, with_adjacent_heads(gradient), *inputs
        _backward[(spec.queries.sentences, inputs[1].shape[1])](
            *tensors, spec.queries.offsets, spec.keys.offsets, *(each.stride(0) for each in tensors),
            **_options(spec, *inputs),
        )  # fmt: skip
        return *gradients, None


def _options(spec: AttentionSpec, queries: Tensor, keys: Tensor, values: Tensor) -> dict[str, Any]:
    """Return the arguments that both kernels have."""
    query_tile, key_tile = (next(tile for tile in TILES if each.longest <= tile) for each in (spec.queries, spec.keys))
    tile = max(query_tile, key_tile)
    (heads, key_width), value_width = queries.shape[1:], values.shape[2]
    key_block, value_block = (max(MIN_WIDTH, triton.next_power_of_2(width)) for width in (key_width, value_width))
    return {
        "scale": 1 / math.sqrt(key_width), "heads": heads, "shared": heads // keys.shape[1],
        "key_width": key_width, "value_width": value_width, "key_block": key_block, "value_block": value_block,
        "query_tile": query_tile, "key_tile": key_tile, "tile": tile, "causal": spec.causal,
        "num_warps": tile // ROWS_PER_WARP,
    }  # fmt: skip


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
def _has_tile(longest, size: tl.constexpr, largest: tl.constexpr):
    """Return whether a sentence takes a tile of this size: the smallest that holds it."""
    return ((longest <= size) | (size == largest)) & ((longest > size // 2) | (size == 32))


@triton.jit
def _attend_tile(
    attended, queries, keys, values, query_start, query_count, key_start, key_count,
    query_stride, key_stride, value_stride, scale, head,
    heads: tl.constexpr, shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    """Attend within one head of one sentence."""
    query = _load(queries, query_start, query_count, query_stride, head, key_width, key_block, query_tile)
    key = _load(keys, key_start, key_count, key_stride, head // shared, key_width, key_block, key_tile)
    value = _load(values, key_start, key_count, value_stride, head // shared, value_width, value_block, key_tile)
    weights = _weights(query, key, key_count, scale, query_tile, key_tile, causal)
    result = _dot(weights.to(value.dtype), value)
    _store(attended, result, query_start, query_count, heads * value_width, head, value_width, value_block, query_tile)


@triton.jit
def _forward(
    attended, queries, keys, values, query_offsets, key_offsets, query_stride, key_stride, value_stride, scale,
    heads: tl.constexpr, shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    head = tl.program_id(1)
    query_start, query_count = _extent(query_offsets, sentence)
    key_start, key_count = _extent(key_offsets, sentence)
    longest = tl.maximum(query_count, key_count)
    for power in tl.static_range(5, 8):
        if 1 << power <= tile:  # noqa: SIM102 - the compiler knows this
            if _has_tile(longest, 1 << power, tile) & (query_count > 0):
                _attend_tile(
                    attended, queries, keys, values, query_start, query_count, key_start, key_count,
                    query_stride, key_stride, value_stride, scale, head, heads, shared, key_width, value_width,
                    key_block, value_block, min(1 << power, query_tile), min(1 << power, key_tile), causal,
                )  # fmt: skip


@triton.jit
def _differentiate_tile(
    grad_queries, grad_keys, grad_values, gradient, queries, keys, values,
    query_start, query_count, key_start, key_count, grad_query_stride, grad_key_stride, grad_value_stride,
    gradient_stride, query_stride, key_stride, value_stride, scale, key_head,
    shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one key head of one sentence, and of the query heads that share it."""
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


@triton.jit
def _backward(
    grad_queries, grad_keys, grad_values, gradient, queries, keys, values, query_offsets, key_offsets,
    grad_query_stride, grad_key_stride, grad_value_stride,
    gradient_stride, query_stride, key_stride, value_stride, scale,
    heads: tl.constexpr, shared: tl.constexpr, key_width: tl.constexpr, value_width: tl.constexpr,
    key_block: tl.constexpr, value_block: tl.constexpr,
    query_tile: tl.constexpr, key_tile: tl.constexpr, tile: tl.constexpr, causal: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    key_head = tl.program_id(1)
    query_start, query_count = _extent(query_offsets, sentence)
    key_start, key_count = _extent(key_offsets, sentence)
    longest = tl.maximum(query_count, key_count)
    for power in tl.static_range(5, 8):
        if 1 << power <= tile:  # noqa: SIM102 - the compiler knows this
            if _has_tile(longest, 1 << power, tile) & (longest > 0):
                _differentiate_tile(
                    grad_queries, grad_keys, grad_values, gradient, queries, keys, values,
                    query_start, query_count, key_start, key_count, grad_query_stride, grad_key_stride,
                    grad_value_stride, gradient_stride, query_stride, key_stride, value_stride, scale, key_head,
                    shared, key_width, value_width, key_block, value_block,
                    min(1 << power, query_tile), min(1 << power, key_tile), causal,
                )  # fmt: skip
