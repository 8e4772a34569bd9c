"""Which implementation of attention a forward pass uses: it depends on the device, the settings and the batch."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.model.attention import (
    Attend,
    AttendInC,
    FlashAttend,
    PaddedAttend,
    RecordingAttend,
    ShortAttend,
)
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.kernels.backend import has_flash_attention
from nmt.model.kernels.c.library import can_train_in_c
from nmt.model.kernels.short_attention import TILES
from nmt.model.packed import Packed

MAX_FLASH_HEAD_WIDTH = 256
"""Widest head that flash attention supports."""
MAX_SHORT_LENGTH = TILES[-1]
"""Longest sentence for attention with one tile per sentence."""


class AttentionSpec(NamedTuple):
    """Attention from one packed stream to another, or to itself: what a plan chooses an implementation for."""

    queries: Packed
    keys: Packed
    causal: bool
    """Whether no query sees later keys."""
    head_width: int
    """The wider of a head's keys and values."""
    precision: torch.dtype
    biased: bool = False
    """Whether positions add a bias to the scores."""
    prefix: Tensor | None = None
    """The number of first tokens of each sentence (B,) that see each other in both directions in spite of `causal`."""
    dropout: float = 0.0
    """The share of the attention weights to drop."""


Plan = Callable[[AttentionSpec], Attend]
"""Chooses how to attend, once per forward pass and kind of attention."""


def plan_attention(spec: AttentionSpec, kind: str = "auto") -> Attend:
    """Choose how to attend: flash attention if the device has it, else padded blocks.

    GPUs of NVIDIA that multiply in bf16 have flash attention, in bf16 and fp16. Elsewhere, fp16 uses PyTorch's fused
    attention. Flash attention can neither add a bias to the scores, nor let a prefix see itself, nor drop attention
    weights (in `varlen_attn`), so all of these use padded blocks, and our own operations. The same holds for the
    operation in C, which trains on CPUs in bf16 and float32.

    `kind` is `runtime.attention`. Short attention leaves batches with longer sentences to flash attention.
    """
    queries, keys = spec.queries, spec.keys
    flash = has_flash_attention(queries.tokens.device, spec.precision) and spec.head_width <= MAX_FLASH_HEAD_WIDTH
    special = spec.biased or spec.prefix is not None or bool(spec.dropout)
    if kind == "auto" and not special and can_train_in_c(queries.tokens.device, spec.precision):
        return AttendInC(queries, keys, causal=spec.causal)
    if kind == "auto" and not flash and not special and spec.precision == torch.float16:
        return FusedPaddedAttend(queries, keys, causal=spec.causal, precision=spec.precision)
    if kind == "padded" or not flash or special:
        return PaddedAttend(queries, keys, causal=spec.causal, prefix=spec.prefix, dropout=spec.dropout)
    if kind == "short" and max(queries.longest, keys.longest) <= MAX_SHORT_LENGTH:
        return ShortAttend(queries, keys, causal=spec.causal)
    return FlashAttend(queries, keys, causal=spec.causal)


PLAN_PADDED: Plan = functools.partial(plan_attention, kind="padded")
"""Plans padded blocks on every device."""


class Recorder:
    """A plan that records the weights of every attention that it plans, in the order in which they are computed."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def __call__(self, spec: AttentionSpec) -> Attend:
        """See `Plan`."""
        return RecordingAttend(spec.queries, spec.keys, causal=spec.causal, prefix=spec.prefix, weights=self.weights)
