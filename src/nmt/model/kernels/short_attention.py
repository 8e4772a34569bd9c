"""Attention within short sentences: a whole sentence of one head is one tile, so there is nothing to iterate over.

Flash attention computes tiles of 128 queries and 128 keys. Sentences have about 31 tokens, so that most of each tile is
thrown away. Here a tile has 32, 64 or 128 rows, whatever holds the longest sentence of the batch. The backward pass
computes the scores again from queries and keys, so the forward pass stores nothing for it.
"""

import math
from typing import Any

import torch
from torch import Tensor

from nmt.model.kernels.backend import uses_triton

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
    causal: bool,
) -> Tensor:
    """Attend from queries (Tq, h, d_k) to keys (Tk, h_kv, d_k) and values (Tk, h_kv, d_v): (Tq, h, d_v).

    The offsets (B + 1,) say where sentences begin, and may end with empty ones. Every token belongs to a sentence, and
    no sentence may be longer than `longest_query` or `longest_key`, which are at most 128. The operation chooses the
    tiles, so that a compiled model has one graph for all of them. Queries, keys and values may be views with any
    distance between tokens. Statistics are in float32.
    """
    attended: Tensor = torch.ops.nmt.short_attention(
        queries, keys, values, query_offsets, key_offsets, longest_query, longest_key, causal
    )
    return attended


@torch.library.custom_op("nmt::short_attention", mutates_args=())
def _short_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
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


@torch.library.custom_op("nmt::short_attention_backward", mutates_args=())
def _short_attention_backward(
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    query_tile, key_tile = tile_for(longest_query), tile_for(longest_key)
    if uses_triton(queries):
        from nmt.model.kernels import triton_attention  # noqa: PLC0415 - imports Triton

        return triton_attention.short_attention_backward(
            gradient, queries, keys, values, query_offsets, key_offsets, query_tile, key_tile, causal
        )
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
    return (
        from_rows.join(grad_queries, len(queries)),
        to_rows.join(grad_keys, len(keys), shared),
        to_rows.join(grad_values, len(values), shared),
    )


@_short_attention.register_fake
def _(queries: Tensor, keys: Tensor, values: Tensor, *_others: Any) -> Tensor:
    return queries.new_empty(*queries.shape[:2], values.shape[2])


@_short_attention_backward.register_fake
def _(gradient: Tensor, queries: Tensor, keys: Tensor, values: Tensor, *_others: Any) -> tuple[Tensor, Tensor, Tensor]:
    return queries.new_empty(queries.shape), keys.new_empty(keys.shape), values.new_empty(values.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    gradients = torch.ops.nmt.short_attention_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return *gradients, None, None, None, None, None


_short_attention.register_autograd(_gradients, setup_context=_save)


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
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) / math.sqrt(queries.shape[-1])
    hidden = ~inside[:, None, None, :]
    if causal:
        hidden = hidden | torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1).nan_to_num(0)  # an empty sentence has no keys
