"""The Triton kernels of `rectifier`: a program adds up some columns over its share of the rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROW_PROGRAMS, SUM_PROGRAMS = 256, 128
"""The number of programs that share the rows of a column, for the gradient and for the sum alone."""
COLUMNS, ROWS, SUM_ROWS = 128, 32, 16
"""The block that a program holds at a time: its columns, and its rows for the gradient and for the sum alone."""


def rectifier_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """See `rectifier`."""
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
    """See `rectifier`."""
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
