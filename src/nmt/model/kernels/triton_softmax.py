"""The Triton kernel of `softmax`: one program per row of logits."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096
"""Logits that a program holds at a time."""


def softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """See `softmax`."""
    rows, width = logits.shape
    assert logits.is_contiguous()
    normaliser, label_logit = (torch.empty(rows, dtype=torch.float32, device=logits.device) for _ in range(2))
    if rows:
        block = min(BLOCK, triton.next_power_of_2(width))
        _softmax_gradient[(rows,)](
            logits, labels, normaliser, label_logit, 1 - smoothing, width=width, block=block, num_warps=8
        )
    return normaliser, label_logit


@triton.jit
def _softmax_gradient(
    logits, labels, normaliser, label_logit, label_probability, width: tl.constexpr, block: tl.constexpr
):
    # a constant width tells the compiler how rows are aligned, so that it can load several logits at a time
    row = tl.program_id(0).to(tl.int64)
    logits += row * width
    label = tl.load(labels + row)
    tl.store(label_logit + row, tl.load(logits + label).to(tl.float32))
    column = tl.arange(0, block)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, width, block):
        scores = tl.load(logits + start + column, mask=start + column < width, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(scores, 0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(scores - larger), 0)
        largest = larger
    tl.store(normaliser + row, largest + tl.log(total))
    for start in range(0, width, block):
        inside = start + column < width
        scores = tl.load(logits + start + column, mask=inside, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(scores - largest) / total
        gradient -= tl.where(start + column == label, label_probability, 0.0)
        tl.store(logits + start + column, gradient.to(logits.dtype.element_ty), mask=inside)
