"""The Triton kernel of `rectifier`: a program adds up some columns over its share of the rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROW_PROGRAMS = 64
"""The number of programs that share the rows of a column."""
COLUMNS, ROWS = 128, 16
"""The block that a program holds at a time."""


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
