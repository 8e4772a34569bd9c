"""Kernels over the rows of logits and gradients: the gradient of the cross-entropy, and sums over rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096
"""Logits that a program holds at a time."""
ROW_PROGRAMS, SUM_PROGRAMS = 256, 128
"""The number of programs that share the rows of a column, for the gradient of a ReLU and for the sum alone."""
COLUMNS, ROWS, SUM_ROWS = 128, 32, 16
"""The block that a program holds at a time: its columns, and its rows for the gradient and for the sum alone."""


def softmax_gradient_(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """See `Eager.softmax_gradient_`: one pass reads the logits of a row, and one replaces them."""
    rows, width = logits.shape
    assert logits.is_contiguous()
    normaliser, label_logit = (torch.empty(rows, dtype=torch.float32, device=logits.device) for _ in range(2))
    if rows:
        block = min(BLOCK, triton.next_power_of_2(width))
        _softmax_gradient[(rows,)](
            logits, labels, normaliser, label_logit, 1 - smoothing, width=width, block=block, num_warps=8
        )
    return normaliser, label_logit


def rectifier_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """See `Fast.rectifier_gradient`."""
    gradient, rectified = gradient.contiguous(), rectified.contiguous()
    rows, width = gradient.shape
    masked = torch.empty_like(gradient)
    programs = min(ROW_PROGRAMS, triton.cdiv(rows, ROWS))
    partial_sums = torch.empty(programs, width, dtype=torch.float32, device=gradient.device)
    if rows:
        _rectifier_gradient[(triton.cdiv(width, COLUMNS), programs)](
            masked, partial_sums, gradient, rectified, rows, width=width, block_columns=COLUMNS, block_rows=ROWS
        )
    return masked, partial_sums.sum(0)


def sum_rows(rows: Tensor) -> Tensor:
    """See `Fast.sum_rows`."""
    rows = rows.contiguous()
    count, width = rows.shape
    programs = min(SUM_PROGRAMS, triton.cdiv(count, SUM_ROWS))
    partial_sums = torch.empty(programs, width, dtype=torch.float32, device=rows.device)
    if count:
        _sum_rows[(triton.cdiv(width, COLUMNS), programs)](
            partial_sums, rows, count, width=width, block_columns=COLUMNS, block_rows=SUM_ROWS
        )
    return partial_sums.sum(0)


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


@triton.jit
def _rectifier_gradient(
    masked, partial_sums, gradient, rectified, rows,
    width: tl.constexpr, block_columns: tl.constexpr, block_rows: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * block_columns + tl.arange(0, block_columns)
    program = tl.program_id(1)
    total = tl.zeros([block_columns], tl.float32)
    for start in range(program * block_rows, rows, tl.num_programs(1) * block_rows):
        row = start + tl.arange(0, block_rows)
        place = row.to(tl.int64)[:, None] * width + column[None, :]
        inside = (row < rows)[:, None] & (column < width)[None, :]
        upstream = tl.load(gradient + place, mask=inside, other=0.0)
        positive = tl.load(rectified + place, mask=inside, other=0.0) > 0
        upstream = tl.where(positive, upstream, 0.0)
        tl.store(masked + place, upstream, mask=inside)
        total += tl.sum(upstream.to(tl.float32), 0)
    tl.store(partial_sums + program * width + column, total, mask=column < width)


@triton.jit
def _sum_rows(
    partial_sums, rows, count, width: tl.constexpr, block_columns: tl.constexpr, block_rows: tl.constexpr
):  # fmt: skip
    column = tl.program_id(0) * block_columns + tl.arange(0, block_columns)
    program = tl.program_id(1)
    total = tl.zeros([block_rows, block_columns], tl.float32)
    for start in range(program * block_rows, count, tl.num_programs(1) * block_rows):
        row = start + tl.arange(0, block_rows)
        place = row.to(tl.int64)[:, None] * width + column[None, :]
        inside = (row < count)[:, None] & (column < width)[None, :]
        total += tl.load(rows + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(partial_sums + program * width + column, tl.sum(total, 0), mask=column < width)
