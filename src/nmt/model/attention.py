"""Scaled dot-product attention over packed streams (section 3.2 of the paper).

Attention is the one place that must know where sentences end. How it does depends on the device and is
decided once a forward pass, by `plan_attention`; the layers only call the plan they are given.

Shapes: T tokens of all sentences, B sentences, L longest sentence, h heads, d_k and d_v widths of a head;
q and k as suffixes mean the side of the queries and of the keys.
"""

import math
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn

from nmt.model.packed import Packed

FLASH_WIDTH = 256
"""Widest head that flash attention takes."""


class Attend(Protocol):
    """Attention of every query of one packed stream to the keys of the same sentence in another."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Queries (Tq, h, d_k), keys (Tk, h, d_k) and values (Tk, h, d_v) give (Tq, h, d_v)."""


class Plan(Protocol):
    """Chooses how to attend from one packed stream to another; asked once a forward pass for each kind of attention."""

    def __call__(self, queries: Packed, keys: Packed, *, causal: bool, head_width: int) -> Attend:
        """See `plan_attention`, which the model uses unless it is told otherwise."""


def plan_attention(queries: Packed, keys: Packed, *, causal: bool, head_width: int) -> Attend:
    """Choose how to attend from `queries` to `keys`: flash where it can be had, else padded."""
    device = queries.tokens.device.type
    half = torch.get_autocast_dtype(device) in (torch.bfloat16, torch.float16)
    if device == "cuda" and torch.is_autocast_enabled(device) and half and head_width <= FLASH_WIDTH:
        return FlashAttend(queries, keys, causal=causal)
    return PaddedAttend(queries, keys, causal=causal)


class FlashAttend:
    """Variable-length flash attention: no padding, no mask."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool) -> None:
        self.queries, self.keys = queries, keys
        self.window = (-1, 0) if causal else (-1, -1)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Attend`."""
        d_k, d_v = queries.shape[-1], values.shape[-1]
        width = -8 * (-max(d_k, d_v) // 8)  # one width, a multiple of 8: zeros change no product
        dtype = torch.get_autocast_dtype("cuda")
        attended = varlen_attn(
            _widen(queries.to(dtype), width),
            _widen(keys.to(dtype), width),
            _widen(values.to(dtype), width),
            self.queries.offsets,
            self.keys.offsets,
            self.queries.longest,
            self.keys.longest,
            scale=1 / math.sqrt(d_k),
            window_size=self.window,
        )
        assert isinstance(attended, Tensor)
        return attended[..., :d_v]


def _widen(heads: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(heads, (0, width - heads.shape[-1])) if heads.shape[-1] < width else heads


class PaddedAttend:
    """Pads inside the call only. Cheap where batches hold sentences of like length, as ours do."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool) -> None:
        self.queries = Padding(queries)
        self.keys = Padding(keys)
        self.mask = attention_mask(queries, keys, causal=causal)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Attend`."""
        return cast(Tensor, _Attention.apply(queries, keys, values, self))  # type: ignore[no-untyped-call]


class RecordingAttend(PaddedAttend):
    """Also adds its weights (B, h, Lq, Lk) to a list, for somebody to look at."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool, weights: list[Tensor]) -> None:
        super().__init__(queries, keys, causal=causal)
        self.weights = weights

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Attend`."""
        weights = attention_weights(self.queries.pad(queries), self.keys.pad(keys), self.mask)
        self.weights.append(weights)
        return self.queries.unpad(torch.matmul(weights.to(values.dtype), self.keys.pad(values)))


class Recorder:
    """A plan that keeps the weights of every attention that it plans, in the order in which they are computed."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def __call__(self, queries: Packed, keys: Packed, *, causal: bool, head_width: int) -> Attend:
        """See `Plan`."""
        return RecordingAttend(queries, keys, causal=causal, weights=self.weights)


def attention_mask(queries: Packed, keys: Packed, *, causal: bool) -> Tensor | None:
    """Boolean (B or 1, 1, Lq or 1, Lk): True where a query must not look; None where it may look anywhere."""
    device = keys.tokens.device
    ended = keys.ended
    mask = None if ended is None else ended[:, None, None, :]
    if causal:
        future = torch.ones(queries.longest, keys.longest, dtype=torch.bool, device=device).triu(1)
        mask = future if mask is None else mask | future
    return mask


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)): (B, h, Lq, Lk), each row a distribution over the keys, in float32 at least."""
    scores = torch.matmul(queries, keys.transpose(-2, -1))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).mul_(1 / math.sqrt(queries.shape[-1]))
    if mask is not None:
        scores.masked_fill_(mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


class _Attention(torch.autograd.Function):
    """softmax(Q K^T / sqrt(d_k)) V on packed streams, its gradient written out: pads, multiplies, takes padding off.

    Left to itself, autograd would take several times as many passes over blocks of zeros.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, plan: PaddedAttend) -> Tensor:
        queries, keys, values = plan.queries.pad(queries), plan.keys.pad(keys), plan.keys.pad(values)
        weights = attention_weights(queries, keys, plan.mask)
        if plan.queries.filling is not None:
            weights.masked_fill_(plan.queries.filling, 0)  # so that no gradient comes from what is no query
        ctx.save_for_backward(queries, keys, values, weights)
        ctx.plan = plan
        return plan.queries.unpad(torch.matmul(weights.to(values.dtype), values))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        queries, keys, values, weights = ctx.saved_tensors
        plan: PaddedAttend = ctx.plan
        gradient = plan.queries.pad(gradient.to(values.dtype))
        of_values = torch.matmul(weights.to(values.dtype).transpose(-2, -1), gradient)
        of_weights = torch.matmul(gradient, values.transpose(-2, -1)).to(weights.dtype).mul_(weights)
        of_scores = of_weights.sub_(weights * of_weights.sum(-1, keepdim=True))
        of_scores = of_scores.mul_(1 / math.sqrt(queries.shape[-1])).to(queries.dtype)
        of_queries = torch.matmul(of_scores, keys)
        of_keys = torch.matmul(of_scores.transpose(-2, -1), queries)
        return plan.queries.unpad(of_queries), plan.keys.unpad(of_keys), plan.keys.unpad(of_values), None


class Padding:
    """The way of a packed stream's rows into a padded block and back."""

    def __init__(self, stream: Packed) -> None:
        self.shape = (stream.sentences, stream.longest)
        self.even = stream.even
        ended = stream.ended
        self.filling = None if ended is None else ended[:, None, :, None]
        """Boolean (B, 1, L, 1): what only fills a sentence up to the longest; None where nothing does."""
        if self.even:
            return
        lengths, places = stream.lengths, torch.arange(stream.longest, device=stream.tokens.device)
        starts = stream.offsets[:-1]
        # a sentence is filled up with its own last token: any number will do, and this one is at hand
        self.tokens = (starts[:, None] + torch.minimum(places, lengths[:, None] - 1)).flatten()
        sentence = torch.repeat_interleave(
            torch.arange(stream.sentences, device=stream.tokens.device), lengths, output_size=len(stream.tokens)
        )
        self.rows = sentence * stream.longest + stream.positions

    def pad(self, heads: Tensor) -> Tensor:
        """(T, h, d) to (B, h, L, d); where a sentence has ended, its last token again."""
        block = heads if self.even else heads.index_select(0, self.tokens)
        return block.view(*self.shape, *heads.shape[1:]).transpose(1, 2).contiguous()

    def unpad(self, block: Tensor) -> Tensor:
        """(B, h, L, d) to (T, h, d)."""
        heads = block.transpose(1, 2).flatten(0, 1)
        return heads if self.even else heads.index_select(0, self.rows)
