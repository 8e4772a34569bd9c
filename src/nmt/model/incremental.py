"""Decoding a token at a time: keys and values are kept, so that each is worked out once.

Shapes: R rows (hypotheses), S sentences still decoded, t tokens so far, L longest source sentence; h heads of
queries, g of them to each of the h_kv heads of keys and values.
"""

import math

import torch
from torch import Tensor

from nmt.model.attention import Padding, attention_mask
from nmt.model.layers import CrossAttention, SelfAttention
from nmt.model.packed import Packed

BLOCK = 16
"""Tokens by which the room for keys and values grows: reordering copies no more than it must."""


class DecoderState:
    """Keys and values of each decoder layer: of the source (once a sentence), and of each row's tokens so far."""

    def __init__(self, source: Packed, cross: list[tuple[Tensor, Tensor]], capacity: int) -> None:
        padding, mask = Padding(source), attention_mask(source, source, causal=False)
        self.cross = [(padding.pad(keys), padding.pad(values)) for keys, values in cross]  # (S, h_kv, L, d)
        self.bias: Tensor | None = None  # (S, 1, L): minus infinity where a sentence has ended
        if mask is not None:
            self.bias = self.cross[0][0].new_zeros(()).masked_fill(mask[:, 0], -torch.inf)
        self.owners = torch.arange(source.sentences, device=source.tokens.device)
        self.sentences = source.sentences
        self.capacity = capacity
        self.length = 0
        self.past = [(keys[:, :, :0], values[:, :, :0]) for keys, values in self.cross]  # (R, h_kv, room, d)

    def follow(self, parents: Tensor) -> None:
        """Let row r go on from row `parents[r]`; sentences of which no row is left are dropped."""
        rows = torch.arange(len(self.owners), device=parents.device)
        moved = not torch.equal(parents, rows)
        if moved:
            self.past = [_select(pair, parents) for pair in self.past]
            self._own(self.owners.index_select(0, parents))
        if self.length == self.past[0][0].shape[2]:
            self.past = [(self._grown(keys), self._grown(values)) for keys, values in self.past]

    def attend_self(self, index: int, attention: SelfAttention, stream: Tensor, rotation: Tensor | None) -> Tensor:
        """Attend from the new token of each row (R, d_model) to that row's tokens so far."""
        queries, *new = attention.project(stream, rotation)
        kept = self.past[index]
        for past, part in zip(kept, new, strict=True):
            past.select(2, self.length).copy_(part)
        keys, values = (past.narrow(2, 0, self.length + 1).flatten(0, 1) for past in kept)
        attended = _attend(queries.reshape(len(keys), -1, keys.shape[2]), keys, values, None)
        projected: Tensor = attention.output(attended.view(len(stream), -1))
        return projected

    def attend_source(self, index: int, attention: CrossAttention, stream: Tensor) -> Tensor:
        """Attend from the new token of each row (R, d_model) to its source sentence."""
        keys, values = self.cross[index]
        queries = attention.project_queries(stream)
        shape = (self.sentences, -1, keys.shape[1], queries.shape[1] // keys.shape[1])  # S, R / S, h_kv, g
        queries = queries.view(*shape, keys.shape[3]).transpose(1, 2)
        bias = None
        if self.bias is not None:
            bias = self.bias[:, None].expand(-1, keys.shape[1], -1, -1).flatten(0, 1)
        attended = _attend(queries.flatten(2, 3).flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), bias)
        attended = attended.view(*queries.shape[:4], -1).transpose(1, 2)
        projected: Tensor = attention.output(attended.reshape(len(stream), -1))
        return projected

    def _own(self, owners: Tensor) -> None:
        """Note the sentence of each row, numbered as they lie in `cross`."""
        if torch.equal(owners, self.owners):
            return
        kept, self.owners = torch.unique_consecutive(owners, return_inverse=True)
        if len(kept) == self.sentences:
            return
        self.sentences = len(kept)
        self.cross = [_select(pair, kept) for pair in self.cross]
        if self.bias is not None:
            self.bias = self.bias.index_select(0, kept)

    def _grown(self, past: Tensor) -> Tensor:
        rows, heads, room, width = past.shape
        grown = past.new_empty(rows, heads, min(self.capacity, room + BLOCK), width)
        grown[:, :, :room] = past
        return grown


def _select(pair: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    return pair[0].index_select(0, rows), pair[1].index_select(0, rows)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k) + bias) V: (B, n, d_k), (B, t, d_k), (B, t, d_v), (B, 1, t) to (B, n, d_v)."""
    start, scale = keys.new_empty(1) if bias is None else bias, 1 / math.sqrt(keys.shape[2])
    scores = torch.baddbmm(start, queries, keys.transpose(1, 2), beta=int(bias is not None), alpha=scale)
    weights = torch.softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32))
    return torch.bmm(weights.to(values.dtype), values)
