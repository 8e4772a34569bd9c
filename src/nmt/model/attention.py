"""Scaled dot-product attention over packed streams (section 3.2 of the paper).

Only attention needs to know where sentences end. `attention_weights` is the paper's formula, and `PaddedAttend` applies
it. The backends (`nmt.model.backends`) compute the same in other ways.

Shapes: T tokens of all sentences, B sentences, L longest sentence, h query heads, h_kv key and value heads, d_k and d_v
widths of a head; the suffixes q and k stand for the queries' and the keys' stream.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.dropout import dropout_mask
from nmt.model.packed import Packed, Padding

ScoreBias = nn.Module
"""Called with queries (..., h, Lq, d_k) and the distances (..., Lq, Lk) from each query to each key, positive for
later keys; returns the numbers to add to the scores: (..., h, Lq, Lk)."""


class Attend(Protocol):
    """Attention from each query to the keys of the same sentence."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """Queries (Tq, h, d_k), keys (Tk, h_kv, d_k) and values (Tk, h_kv, d_v) give (Tq, h d_v).

        `bias` returns numbers to add to the scores of self-attention, given the queries and the distances to the keys.
        """


AttendSource = Callable[[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]], Tensor]
"""`attend_source(queries, project)` attends from each query (Tq, h, d_k) of the decoder to the source of the same
sentence, and returns (Tq, h d_v); `project` returns the keys and values of the encoder's output."""


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Attention from one packed stream to another, or to itself: what the layers of a forward pass have in common."""

    queries: Packed
    keys: Packed
    causal: bool
    """Whether no query sees later keys."""
    head_width: int
    """The wider of a head's keys and values."""
    precision: torch.dtype
    biased: bool = False
    """Whether positions add a bias to the scores."""
    dropout: float = 0.0
    """The share of the attention weights to drop."""

    @property
    def plain(self) -> bool:
        """Whether it is full or causal attention, and no more: what all operations compute."""
        return not self.biased and not self.dropout

    @property
    def longest(self) -> int:
        """No sentence of either stream is longer than this."""
        return max(self.queries.longest, self.keys.longest)


Plan = Callable[[AttentionSpec], Attend]
"""Chooses how to attend, once per forward pass and kind of attention: a backend's, or one that also records."""


def exact_type(tensor: Tensor) -> torch.dtype:
    """Return the precision of sums and statistics over a tensor: its own, but at least float32."""
    return torch.promote_types(tensor.dtype, torch.float32)


def attention_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return Q K^T / sqrt(d_k), computed in float32 or more: (B, h, Lq, Lk)."""
    exact = exact_type(queries)
    scaled = queries.to(exact) * (1 / math.sqrt(queries.shape[-1]))
    return torch.matmul(scaled, keys.to(exact).transpose(-2, -1))


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + bias): (B, h, Lq, Lk).

    Each row is a distribution over the keys, in float32 or more.
    """
    scores = attention_scores(queries, keys)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


def attention_mask(queries: Packed, keys: Packed, *, causal: bool) -> Tensor | None:
    """Return which keys each query must not see: boolean, broadcast to (B, 1, Lq, Lk), or None if it may see all."""
    device = keys.tokens.device
    ended = keys.ended
    mask = None if ended is None else ended[:, None, None, :]
    if causal:
        future = torch.ones(queries.longest, keys.longest, dtype=torch.bool, device=device).triu(1)
        mask = future if mask is None else mask | future
    return mask


def share_heads(heads: Tensor, count: int) -> Tensor:
    """Repeat key or value heads (T, h_kv, d) for the query heads that share them: (T, count, d)."""
    groups = count // heads.shape[1]
    return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


def with_adjacent_heads(heads: Tensor) -> Tensor:
    """Return (T, h, d) such that the numbers of a token are adjacent: the same tensor if possible."""
    return heads if heads.stride()[1:] == (heads.shape[2], 1) else heads.contiguous()


def room_for_gradients(spec: "AttentionSpec", queries: Tensor, keys: Tensor, values: Tensor) -> list[Tensor]:
    """Return empty tensors of these shapes: of self-attention, the parts of one matrix, else keys and values are.

    So products that compute several of them can take their gradient without copying it (`Fast.split`).
    """
    groups = [(queries, keys, values)] if spec.queries is spec.keys else [(queries,), (keys, values)]
    room = []
    for group in groups:
        widths = [heads.shape[1] * heads.shape[2] for heads in group]
        parts = group[0].new_empty(len(group[0]), sum(widths)).split(widths, -1)
        room += [part.unflatten(-1, heads.shape[1:]) for part, heads in zip(parts, group, strict=True)]
    return room


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return matrices (T, width) side by side: a view if they are adjacent columns of one matrix, else a copy."""
    start, stride = parts[0].storage_offset(), parts[0].stride(0)
    for part in parts:
        same = part.untyped_storage()._cdata == parts[0].untyped_storage()._cdata
        if not same or part.stride() != (stride, 1) or part.storage_offset() != start:
            return torch.cat(list(parts), -1)
        start += part.shape[1]
    width = sum(part.shape[1] for part in parts)
    return parts[0].as_strided((len(parts[0]), width), (stride, 1)) if width <= stride else torch.cat(list(parts), -1)


def widen(heads: Tensor, multiple: int, width: int = 0) -> Tensor:
    """Fill heads (T, h, d) up with zeros to a multiple of a width, which changes no product; at least to `width`."""
    missing = -(-max(heads.shape[-1], width) // multiple) * multiple - heads.shape[-1]
    return F.pad(heads, (0, missing)) if missing else heads


class PaddedAttend:
    """The formula on padded blocks, which sentences of similar lengths fill.

    In fp16 it is PyTorch's fused attention, for GPUs that multiply in fp16 but have no flash attention: that keeps no
    attention weights for backward.
    """

    def __init__(self, spec: AttentionSpec, record: Callable[[Tensor], None] | None = None) -> None:
        """Attend as specified; `record`, if given, gets the weights (B, h, Lq, Lk) of each call."""
        self.fused = spec.plain and spec.precision == torch.float16 and record is None
        self.queries, self.keys = Padding(spec.queries), Padding(spec.keys)
        self.mask = attention_mask(spec.queries, spec.keys, causal=spec.causal)
        self.dropout, self.record = spec.dropout, record

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        heads = queries.shape[1]
        queries = self.queries.pad(queries)
        keys, values = (self.keys.pad(share_heads(each, heads)) for each in (keys, values))
        if self.fused:
            seen = None if self.mask is None else ~self.mask
            return self.queries.unpad(F.scaled_dot_product_attention(queries, keys, values, seen)).flatten(-2)
        added = None
        if bias is not None:
            places = torch.arange(queries.shape[2], device=queries.device)
            added = bias(queries.to(exact_type(queries)), places - places[:, None])
        weights = attention_weights(queries, keys, self.mask, added)
        if self.record is not None:
            self.record(weights)
        if self.dropout:
            weights = weights * dropout_mask(weights, self.dropout) * (1 / (1 - self.dropout))
        attended = torch.matmul(weights, values.to(weights.dtype))
        return self.queries.unpad(attended.to(values.dtype)).flatten(-2)


class Recorder:
    """A plan that records the weights of every attention, in the order in which they are computed."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def __call__(self, spec: AttentionSpec) -> Attend:
        """See `Plan`."""
        return PaddedAttend(spec, self.weights.append)
