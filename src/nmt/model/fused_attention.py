"""PyTorch's fused attention on padded blocks, for GPUs that multiply in fp16 but have no flash attention."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import attention_mask, share_heads
from nmt.model.packed import Packed
from nmt.model.padding import Padding
from nmt.model.positions.base import ScoreBias

MASK_ALIGNMENT = 8
"""Rows of the mask start at a multiple of this many numbers; otherwise each call would copy the mask."""


class FusedPaddedAttend:
    """One operation forward and one backward, which keep no attention weights; padding exists only inside the call."""

    def __init__(self, queries: Packed, keys: Packed, *, causal: bool, precision: torch.dtype) -> None:
        self.queries, self.keys = Padding(queries), Padding(keys)
        mask = attention_mask(queries, keys, causal=causal)
        self.mask = None if mask is None else _additive(mask, queries.longest, precision)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        assert bias is None
        heads = queries.shape[1]
        attended = F.scaled_dot_product_attention(
            _Pad.apply(queries, self.queries),  # type: ignore[no-untyped-call]
            _Pad.apply(share_heads(keys, heads), self.keys),  # type: ignore[no-untyped-call]
            _Pad.apply(share_heads(values, heads), self.keys),  # type: ignore[no-untyped-call]
            attn_mask=self.mask,
        )
        return cast(Tensor, _Unpad.apply(attended, self.queries)).flatten(-2)  # type: ignore[no-untyped-call]


def _additive(hidden: Tensor, queries: int, precision: torch.dtype) -> Tensor:
    """Return a boolean mask (B or 1, 1, 1 or Lq, Lk) as numbers to add to the scores (B or 1, 1, Lq, Lk)."""
    hidden = hidden.view(-1, 1, *hidden.shape[-2:]).expand(-1, 1, queries, -1)
    length = hidden.shape[-1]
    width = -MASK_ALIGNMENT * (-length // MASK_ALIGNMENT)
    rows = torch.zeros(*hidden.shape[:-1], width, dtype=precision, device=hidden.device)
    return rows.narrow(-1, 0, length).masked_fill_(hidden, -torch.inf)


class _Pad(torch.autograd.Function):
    """`Padding.pad` of a stream whose padding gets no gradient, because nothing depends on it."""

    @staticmethod
    def forward(ctx: Any, heads: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padding.pad(heads)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padding: Padding = ctx.padding
        return padding.unpad(gradient), None


class _Unpad(torch.autograd.Function):
    """`Padding.unpad`."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padding.unpad(block)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padding: Padding = ctx.padding
        block = padding.pad(gradient)
        return block if padding.after_end is None else block.masked_fill_(padding.after_end, 0), None
