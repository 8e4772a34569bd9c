"""Scaled dot-product attention over packed streams (section 3.2 of the paper).

Only attention needs to know where sentences end. `attention_weights` is the paper's formula, and `PaddedAttend` applies
it. The classes after it compute the same in other ways: `nmt.model.attention_plan` chooses one per forward pass, by the
device, and the layers call what they are given.

Shapes: T tokens of all sentences, B sentences, L longest sentence, h query heads, h_kv key and value heads, d_k and d_v
widths of a head; the suffixes q and k stand for the queries' and the keys' stream.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from nmt.model.cpu.dropout import dropout_mask
from nmt.model.kernels.backend import sum_dtype
from nmt.model.kernels.c.attention import Sentences, attend
from nmt.model.kernels.c.library import LANES
from nmt.model.kernels.short_attention import short_attention
from nmt.model.packed import Packed
from nmt.model.padding import Padding
from nmt.model.positions.base import ScoreBias


class Attend(Protocol):
    """Attention from each query to the keys of the same sentence."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """Queries (Tq, h, d_k), keys (Tk, h_kv, d_k) and values (Tk, h_kv, d_v) give (Tq, h d_v).

        `bias` returns numbers to add to the scores of self-attention, given the queries and the distances to the keys.
        """


class AttendSource(Protocol):
    """Attention from each query of the decoder to the source of the same sentence."""

    def __call__(self, queries: Tensor, project: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        """Queries (Tq, h, d_k) give (Tq, h d_v); `project` returns the keys and values of the encoder's output."""


class AttendEncoderOutput:
    """Attention from the decoder to the encoder's packed output (T, d_model)."""

    def __init__(self, memory: Tensor, attend: Attend) -> None:
        self.memory, self.attend = memory, attend

    def __call__(self, queries: Tensor, project: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        """See `AttendSource`."""
        return self.attend(queries, *project(self.memory))


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + bias): (B, h, Lq, Lk).

    Each row is a distribution over the keys, in float32 or more.
    """
    scores = attention_scores(queries, keys)
    if bias is not None:
        scores.add_(bias)
    if mask is not None:
        scores.masked_fill_(mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


def attention_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return Q K^T / sqrt(d_k), computed in float32 or more: (B, h, Lq, Lk)."""
    exact = sum_dtype(queries)
    scores = torch.matmul(queries.to(exact), keys.to(exact).transpose(-2, -1))
    return scores.mul_(1 / math.sqrt(queries.shape[-1]))


def attention_mask(queries: Packed, keys: Packed, *, causal: bool, prefix: Tensor | None = None) -> Tensor | None:
    """Return which keys each query must not see: boolean, broadcast to (B, 1, Lq, Lk), or None if it may see all.

    With `causal` these are the later ones, except for the first `prefix` (B,) keys of each sentence.
    """
    device = keys.tokens.device
    ended = keys.ended
    mask = None if ended is None else ended[:, None, None, :]
    if causal:
        future = torch.ones(queries.longest, keys.longest, dtype=torch.bool, device=device).triu(1)
        if prefix is not None:
            future = future & (torch.arange(keys.longest, device=device) >= prefix[:, None])[:, None, None]
        mask = future if mask is None else mask | future
    return mask


def share_heads(heads: Tensor, count: int) -> Tensor:
    """Repeat key or value heads (T, h_kv, d) for the query heads that share them: (T, count, d)."""
    groups = count // heads.shape[1]
    return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


class PaddedAttend:
    """Attention on padded blocks. Padding exists only inside the call, and sentences of similar lengths need little."""

    def __init__(
        self, queries: Packed, keys: Packed, *, causal: bool, prefix: Tensor | None = None, dropout: float = 0.0
    ) -> None:
        """Drop this share of the attention weights; see `attention_mask` for the rest."""
        self.queries = Padding(queries)
        self.keys = Padding(keys)
        self.mask = attention_mask(queries, keys, causal=causal, prefix=prefix)
        self.dropout = dropout

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        heads = queries.shape[1]
        keys, values, added = share_heads(keys, heads), share_heads(values, heads), self.added_scores(bias, queries)
        attended = _Attention.apply(queries, keys, values, added, self)  # type: ignore[no-untyped-call]
        return cast(Tensor, attended).flatten(-2)

    def added_scores(self, bias: ScoreBias | None, queries: Tensor) -> Tensor | None:
        """Return the numbers that a bias adds to the scores: (B or 1, h, Lq, Lk)."""
        if bias is None:
            return None
        places = torch.arange(self.queries.shape[1], device=queries.device)
        scores: Tensor = bias(self.queries.pad(queries).to(sum_dtype(queries)), places - places[:, None])
        return scores


class _Attention(torch.autograd.Function):
    """softmax(Q K^T / sqrt(d_k) + bias) V on packed streams in float32 or more, with its gradient written out.

    Autograd would make several times as many passes over padded blocks.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, padded: PaddedAttend
    ) -> Tensor:
        queries, keys, values = padded.queries.pad(queries), padded.keys.pad(keys), padded.keys.pad(values)
        weights = attention_weights(queries, keys, padded.mask, bias)
        if padded.queries.after_end is not None:
            weights.masked_fill_(padded.queries.after_end, 0)  # so that padding contributes no gradient
        # 1 if a weight is kept, else 0
        kept = dropout_mask(weights, padded.dropout).to(values.dtype) if padded.dropout else None
        ctx.save_for_backward(queries, keys, values, weights, kept)
        ctx.padded, ctx.bias_dtype = padded, None if bias is None else bias.dtype
        attended = torch.matmul(weights if kept is None else weights * kept, values.to(weights.dtype))
        attended = attended if kept is None else attended.mul_(1 / (1 - padded.dropout))
        return padded.queries.unpad(attended.to(values.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None, None]:
        queries, keys, values, weights, kept = ctx.saved_tensors
        padded: PaddedAttend = ctx.padded
        dtype, exact, used = values.dtype, weights.dtype, weights
        queries, keys, values = queries.to(exact), keys.to(exact), values.to(exact)
        gradient = padded.queries.pad(gradient.to(exact))
        if kept is not None:
            gradient, used = gradient * (1 / (1 - padded.dropout)), weights * kept
        grad_values = torch.matmul(used.transpose(-2, -1), gradient)
        grad_weights = torch.matmul(gradient, values.transpose(-2, -1))
        if kept is not None:
            grad_weights.mul_(kept)
        grad_weights.mul_(weights)
        grad_scores = grad_weights.sub_(weights * grad_weights.sum(-1, keepdim=True))
        grad_bias = grad_scores.to(ctx.bias_dtype, copy=True) if ctx.needs_input_grad[3] else None
        grad_products = grad_scores.mul_(1 / math.sqrt(queries.shape[-1]))
        grad_queries = torch.matmul(grad_products, keys)
        grad_keys = torch.matmul(grad_products.transpose(-2, -1), queries)
        grad_packed = padded.queries.unpad(grad_queries), padded.keys.unpad(grad_keys), padded.keys.unpad(grad_values)
        of_queries, of_keys, of_values = (each.to(dtype) for each in grad_packed)
        return of_queries, of_keys, of_values, grad_bias, None


class RecordingAttend(PaddedAttend):
    """Padded attention that also appends its weights (B, h, Lq, Lk) to a list."""

    def __init__(
        self, queries: Packed, keys: Packed, *, causal: bool, prefix: Tensor | None = None, weights: list[Tensor]
    ) -> None:
        super().__init__(queries, keys, causal=causal, prefix=prefix)
        self.weights = weights

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        keys, values = (share_heads(heads, queries.shape[1]) for heads in (keys, values))
        added = self.added_scores(bias, queries)
        weights = attention_weights(self.queries.pad(queries), self.keys.pad(keys), self.mask, added)
        self.weights.append(weights)
        attended = torch.matmul(weights, self.keys.pad(values).to(weights.dtype))
        return self.queries.unpad(attended.to(values.dtype)).flatten(-2)


class FlashAttend:
    """Variable-length flash attention: no padding, no mask."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool) -> None:
        self.queries, self.keys = queries, keys
        self.window = (-1, 0) if causal else (-1, -1)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415 - as slow to import as torch

        assert bias is None
        heads, d_k, d_v = queries.shape[1], queries.shape[2], values.shape[2]
        width = -8 * (-max(d_k, d_v) // 8)  # flash attention needs one width, a multiple of 8; zeros change no product
        attended = varlen_attn(
            _widen(queries, width),
            _widen(share_heads(keys, heads), width),
            _widen(share_heads(values, heads), width),
            self.queries.offsets,
            self.keys.offsets,
            self.queries.longest,
            self.keys.longest,
            scale=1 / math.sqrt(d_k),
            window_size=self.window,
        )
        assert isinstance(attended, Tensor)
        return attended[..., :d_v].flatten(-2)


class ShortAttend:
    """Attention with one tile per sentence and head, for sentences that fit into a tile."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool) -> None:
        self.queries, self.keys, self.causal = queries, keys, causal

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        assert bias is None
        attended = short_attention(
            queries, keys.to(queries.dtype), values.to(queries.dtype),
            self.queries.offsets, self.keys.offsets, self.queries.longest, self.keys.longest,
            causal=self.causal, one_product=self.queries is self.keys,
        )  # fmt: skip
        return attended.flatten(-2)


class AttendInC:
    """Attention by an operation in C on a CPU, one sentence and head at a time: no padding."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool) -> None:
        self.offsets, self.longest = (queries.offsets, keys.offsets), max(queries.longest, keys.longest)
        self.causal = causal

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        assert bias is None
        d_k, d_v = queries.shape[2], values.shape[2]
        # whole vector registers; zeros change no product
        key_width, value_width = (-LANES * (-width // LANES) for width in (d_k, d_v))
        attended = attend(
            _widen(queries, key_width),
            _widen(keys, key_width),
            _widen(values, value_width),
            Sentences(*self.offsets, self.longest, self.causal, 1 / math.sqrt(d_k)),
        )
        return attended[..., :d_v].flatten(-2)


def _widen(heads: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(heads, (0, width - heads.shape[-1])) if heads.shape[-1] < width else heads
