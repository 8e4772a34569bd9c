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
        attended = attend(self.queries.pad(queries), self.keys.pad(keys), self.keys.pad(values), self.mask)
        return self.queries.unpad(attended)


class RecordingAttend(PaddedAttend):
    """Also adds its weights (B, h, Lq, Lk) to a list, for somebody to look at."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool, weights: list[Tensor]) -> None:
        super().__init__(queries, keys, causal=causal)
        self.weights = weights

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Attend`."""
        heads = self.queries.pad(queries), self.keys.pad(keys)
        self.weights.append(attention_weights(*heads, self.mask, torch.float32))
        return super().__call__(queries, keys, values)


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
    mask = None
    if not keys.even:
        mask = (torch.arange(keys.longest, device=device) >= keys.lengths[:, None])[:, None, None, :]
    if causal:
        future = torch.ones(queries.longest, keys.longest, dtype=torch.bool, device=device).triu(1)
        mask = future if mask is None else mask | future
    return mask


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V over padded heads: (B, h, Lq, d_k), (B, h, Lk, d_k), (B, h, Lk, d_v)."""
    return torch.matmul(attention_weights(queries, keys, mask, values.dtype), values)


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)): (B, h, Lq, Lk), each row a distribution over the keys."""
    scores = torch.matmul(queries / math.sqrt(queries.shape[-1]), keys.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    return torch.softmax(scores, dim=-1, dtype=dtype)


class Padding:
    """The way of a packed stream's rows into a padded block and back."""

    def __init__(self, stream: Packed) -> None:
        self.shape = (stream.sentences, stream.longest)
        self.even = stream.even
        sentence = torch.repeat_interleave(
            torch.arange(stream.sentences, device=stream.tokens.device), stream.lengths, output_size=len(stream.tokens)
        )
        self.rows = sentence * stream.longest + stream.positions

    def pad(self, heads: Tensor) -> Tensor:
        """(T, h, d) to (B, h, L, d), zeros where a sentence has ended."""
        block = heads if self.even else _Scatter.apply(heads, self.rows, self.shape[0] * self.shape[1])  # type: ignore[no-untyped-call]
        return block.view(*self.shape, *heads.shape[1:]).transpose(1, 2)

    def unpad(self, block: Tensor) -> Tensor:
        """(B, h, L, d) to (T, h, d)."""
        heads = block.transpose(1, 2).flatten(0, 1)
        return heads if self.even else cast(Tensor, _Gather.apply(heads, self.rows))  # type: ignore[no-untyped-call]


class _Scatter(torch.autograd.Function):
    """Put rows into a larger block of zeros. Each row has its own place, so backward is a plain gather."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return rows.new_zeros(size, *rows.shape[1:]).index_copy_(0, places, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


class _Gather(torch.autograd.Function):
    """Take rows out of a larger block: the way back of `_Scatter`."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.size = len(block)
        return block.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size, *gradient.shape[1:]).index_copy_(0, places, gradient), None
