"""The operations of the model on GPUs that PyTorch calls cuda, AMD's too, with what PyTorch itself has for them."""

import importlib.util
import math

import torch
from torch import Tensor

from nmt.compute.machine import HALF_PRECISIONS, has_bf16, is_amd
from nmt.model.attention import Attend, AttentionSpec, ScoreBias, share_heads, widen
from nmt.model.backends.fast import Fast

MAX_FLASH_HEAD_WIDTH = 256
"""Widest head that flash attention supports."""
FLASH_WIDTH_MULTIPLE = 8
"""Flash attention needs heads of one width, a multiple of this."""


def has_triton() -> bool:
    """Return whether Triton is installed; it comes with PyTorch's builds for GPUs."""
    return importlib.util.find_spec("triton") is not None


def has_flash_attention(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether a device has flash attention in this precision: GPUs of NVIDIA that multiply in bf16 do.

    Some releases for AMD's GPUs do not support windows in `varlen_attn`, which make it causal.
    """
    if device.type != "cuda" or is_amd() or precision not in HALF_PRECISIONS:
        return False
    return precision == torch.bfloat16 or has_bf16(device)  # others compute in bf16 never


class Cuda(Fast):
    """Flash attention where the GPU has it, and products that return the sums of gradients in float32."""

    name = "cuda"

    def __init__(self, device: torch.device) -> None:
        """Compute on a GPU."""
        self.flash = {dtype: has_flash_attention(device, dtype) for dtype in HALF_PRECISIONS}
        self.sums_exactly = not is_amd()
        """Whether products of numbers in 16 bits can be returned in float32."""

    def attention(self, spec: AttentionSpec) -> Attend:
        """See `Eager.attention`.

        Flash attention can neither add a bias to the scores nor drop attention weights.
        """
        flash = spec.plain and self.flash.get(spec.precision, False) and spec.head_width <= MAX_FLASH_HEAD_WIDTH
        return FlashAttend(spec) if flash else super().attention(spec)

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor, *, rectify: bool) -> Tensor:
        """See `Fast.product`."""
        if rectify:
            return torch._addmm_activation(bias, rows, weight.t())
        return super().product(rows, weight, bias, rectify=False)

    def exact_product(self, left: Tensor, right: Tensor, exact: torch.dtype) -> Tensor:
        """See `Eager.exact_product`."""
        if self.sums_exactly and left.dtype != exact:
            return torch.mm(left, right, out_dtype=exact)
        return left @ right


class FlashAttend:
    """Variable-length flash attention: no padding, no mask."""

    def __init__(self, spec: AttentionSpec) -> None:
        self.queries, self.keys = spec.queries, spec.keys
        self.window = (-1, 0) if spec.causal else (-1, -1)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`."""
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415 - as slow to import as torch

        heads, d_k, d_v = queries.shape[1], queries.shape[2], values.shape[2]
        width, scale = max(d_k, d_v), 1 / math.sqrt(d_k)
        attended = varlen_attn(
            widen(queries, FLASH_WIDTH_MULTIPLE, width),
            widen(share_heads(keys, heads), FLASH_WIDTH_MULTIPLE, width),
            widen(share_heads(values, heads), FLASH_WIDTH_MULTIPLE, width),
            self.queries.offsets,
            self.keys.offsets,
            self.queries.longest,
            self.keys.longest,
            scale=scale,
            window_size=self.window,
        )
        assert isinstance(attended, Tensor)
        return attended[..., :d_v].flatten(-2)
