"""Attention within short sentences: a whole sentence of one head is one tile, so there is nothing to iterate over.

Flash attention computes tiles of 128 queries and 128 keys. Sentences have about 31 tokens, so that most of each tile is
thrown away. Here a tile has 32, 64 or 128 rows, whatever holds the longest sentence of the batch. The backward pass
computes the scores again from queries and keys, so the forward pass stores nothing for it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nmt.model.kernels.backend import is_traced, launched_directly, sum_dtype, uses_triton

TILES = (32, 64, 128)
"""Numbers of tokens that a tile can have."""
MAX_HEAD_WIDTH = 64
"""Widest head for which the largest tile fits into the shared memory of all GPUs (99 KiB on some)."""


def tile_for(longest: int) -> int:
    """Return the smallest tile that holds a sentence of this many tokens."""
    if longest > TILES[-1]:
        raise ValueError(f"a tile holds at most {TILES[-1]} tokens, not {longest}")
    return next(tile for tile in TILES if longest <= tile)


def short_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    longest_query: int,
    longest_key: int,
    *,
    causal: bool,
    one_product: bool = False,
) -> Tensor:
    """Attend from queries (Tq, h, d_k) to keys (Tk, h_kv, d_k) and values (Tk, h_kv, d_v): (Tq, h, d_v).

    The offsets (B + 1,) say where sentences begin, and may end with empty ones. Every token belongs to a sentence, and
    no sentence may be longer than `longest_query` or `longest_key`, which are at most 128. The operation chooses the
    tiles, so that a compiled model has one graph for all of them. Queries, keys and values may be views with any
    distance between tokens. Statistics are in float32.

    Gradients of keys and values are parts of one tensor, in this order; if `one_product`, that of the queries is its
    first part. So products that compute several of them can take their gradient without copying it
    (`split_product`).
    """
    call: Callable[..., Tensor] = torch.ops.nmt.short_attention if is_traced() else _launch_short_attention
    attended: Tensor = call(
        queries, keys, values, query_offsets, key_offsets, longest_query, longest_key, causal, one_product
    )
    return attended


def _compute(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
    one_product: bool,
) -> Tensor:
    query_tile, key_tile = tile_for(longest_query), tile_for(longest_key)
    if uses_triton(queries):
        from nmt.model.kernels import triton_attention  # noqa: PLC0415 - imports Triton

        return triton_attention.short_attention(
            queries, keys, values, query_offsets, key_offsets, query_tile, key_tile, causal
        )
    from_rows, to_rows = _Tiles(query_offsets, query_tile), _Tiles(key_offsets, key_tile)
    shared = queries.shape[1] // keys.shape[1]
    weights = _weights(from_rows.split(queries), to_rows.split(keys, shared), to_rows.inside, causal)
    attended = torch.matmul(weights.to(values.dtype), to_rows.split(values, shared))
    return from_rows.join(attended, len(queries))


def _compute_backward(
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
    one_product: bool,
) -> list[Tensor]:
    query_tile, key_tile = tile_for(longest_query), tile_for(longest_key)
    if uses_triton(queries):
        from nmt.model.kernels import triton_attention  # noqa: PLC0415 - imports Triton

        buffers = _gradient_buffers(queries, keys, values, one_product)
        triton_attention.short_attention_backward(
            _parts(buffers, queries, keys, values),
            gradient, queries, keys, values, query_offsets, key_offsets, query_tile, key_tile, causal,
        )  # fmt: skip
        return buffers
    from_rows, to_rows = _Tiles(query_offsets, query_tile), _Tiles(key_offsets, key_tile)
    shared = queries.shape[1] // keys.shape[1]
    query, key, value = from_rows.split(queries), to_rows.split(keys, shared), to_rows.split(values, shared)
    upstream = from_rows.split(gradient)
    weights = _weights(query, key, to_rows.inside, causal)
    grad_weights = torch.matmul(upstream, value.transpose(-2, -1)).to(weights.dtype)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
    grad_scores = (grad_scores / math.sqrt(queries.shape[-1])).to(queries.dtype)
    grad_queries = torch.matmul(grad_scores, key)
    grad_keys = torch.matmul(grad_scores.transpose(-2, -1), query)
    grad_values = torch.matmul(weights.to(values.dtype).transpose(-2, -1), upstream)
    parts = (
        from_rows.join(grad_queries, len(queries)).flatten(1),
        to_rows.join(grad_keys, len(keys), shared).flatten(1),
        to_rows.join(grad_values, len(values), shared).flatten(1),
    )
    return [torch.cat(parts, 1)] if one_product else [parts[0], torch.cat(parts[1:], 1)]


_short_attention = torch.library.custom_op("nmt::short_attention", _compute, mutates_args=())
_short_attention_backward = torch.library.custom_op("nmt::short_attention_backward", _compute_backward, mutates_args=())


@_short_attention.register_fake
def _(queries: Tensor, keys: Tensor, values: Tensor, *_others: Any) -> Tensor:
    return queries.new_empty(*queries.shape[:2], values.shape[2])


@_short_attention_backward.register_fake
def _(gradient: Tensor, queries: Tensor, keys: Tensor, values: Tensor, *others: Any) -> list[Tensor]:
    return _gradient_buffers(queries, keys, values, one_product=others[-1])


def _gradient_buffers(queries: Tensor, keys: Tensor, values: Tensor, one_product: bool) -> list[Tensor]:
    """Return the tensors that hold the gradients: one, or one for the queries and one for keys and values."""
    widths = [each.shape[1] * each.shape[2] for each in (queries, keys, values)]
    if one_product:
        return [queries.new_empty(len(queries), sum(widths))]
    return [queries.new_empty(len(queries), widths[0]), keys.new_empty(len(keys), sum(widths[1:]))]


def _parts(buffers: list[Tensor], queries: Tensor, keys: Tensor, values: Tensor) -> list[Tensor]:
    """Return the gradients of queries, keys and values, as views of the tensors that hold them."""
    parts: list[Tensor] = []
    for buffer in buffers:
        like = (queries, keys, values)[len(parts) :] if buffer is buffers[-1] else (queries,)
        split = buffer.split([each.shape[1] * each.shape[2] for each in like], 1)
        parts.extend(part.unflatten(1, each.shape[1:]) for part, each in zip(split, like, strict=True))
    return parts


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    call = torch.ops.nmt.short_attention_backward if is_traced() else _compute_backward
    buffers = call(gradient, *ctx.saved_tensors, *ctx.options)
    return *_parts(buffers, *ctx.saved_tensors[:3]), None, None, None, None, None, None


_short_attention.register_autograd(_gradients, setup_context=_save)
_launch_short_attention = launched_directly(_compute, _save, _gradients)


class _Tiles:
    """Moves the rows of a packed stream into tiles of equal length, filled with zeros, and back."""

    def __init__(self, offsets: Tensor, tile: int) -> None:
        places = torch.arange(tile, device=offsets.device)
        self.inside = places < offsets.diff()[:, None]
        self.rows = torch.where(self.inside, offsets[:-1, None] + places, 0)

    def split(self, heads: Tensor, shared: int = 1) -> Tensor:
        """(T, h, d) to (B, h shared, tile, d): each head stands for `shared` query heads."""
        tiles = heads[self.rows] * self.inside[..., None, None]
        return tiles.repeat_interleave(shared, dim=2).transpose(1, 2)

    def join(self, tiles: Tensor, count: int, shared: int = 1) -> Tensor:
        """(B, h shared, tile, d) to (T, h, d), the sum of the heads that share one."""
        heads = tiles.transpose(1, 2)[self.inside].unflatten(1, (-1, shared)).sum(2)
        joined: Tensor = heads.new_zeros(count, *heads.shape[1:])
        return joined.index_copy_(0, self.rows[self.inside], heads)


def _weights(queries: Tensor, keys: Tensor, inside: Tensor, causal: bool) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k)) of each tile (B, h, tile, tile), in float32 or more."""
    scores = torch.matmul(queries, keys.transpose(-2, -1))
    scores = scores.to(sum_dtype(scores)) / math.sqrt(queries.shape[-1])
    hidden = ~inside[:, None, None, :]
    if causal:
        hidden = hidden | torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1).nan_to_num(0)  # an empty sentence has no keys
