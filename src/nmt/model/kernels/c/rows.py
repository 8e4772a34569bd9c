"""Operations in C on the rows of a gradient, with results in float32, without a copy of the rows in float32."""

import torch
from torch import Tensor

from nmt.model.kernels.c.library import LANES, computes_in_c, library


def computes_on_rows_in_c(gradient: Tensor) -> bool:
    """Return whether the operations in C can compute on the rows of a gradient (T, d)."""
    return computes_in_c(gradient) and gradient.dim() == 2 and gradient.shape[1] % LANES == 0


def sum_rows(rows: Tensor) -> Tensor:
    """Return the sum of the rows (T, d) in float32: (d,)."""
    rows = rows.contiguous()
    sums = torch.empty(rows.shape[1])
    library(rows).sum_rows(rows.data_ptr(), sums.data_ptr(), *rows.shape)
    return sums


def scaled_difference(rows: Tensor, row: Tensor, scale: Tensor) -> Tensor:
    """Return (rows - row) * scale in the precision of `row`, for rows (T, d), a row (d,) and a number."""
    if not computes_on_rows_in_c(rows) or row.dtype != torch.float32:
        return torch.sub(rows, row).mul_(scale)
    rows, result = rows.contiguous(), row.new_empty(rows.shape)
    library(rows).scaled_difference(rows.data_ptr(), row.data_ptr(), float(scale), result.data_ptr(), *rows.shape)
    return result


def rectifier_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """See `nmt.model.kernels.rectifier.rectifier_gradient`."""
    gradient, rectified = gradient.contiguous(), rectified.contiguous()
    kept, sums = torch.empty_like(gradient), torch.empty(gradient.shape[1])
    tensors = (each.data_ptr() for each in (gradient, rectified, kept, sums))
    library(gradient).rectifier_gradient(*tensors, *gradient.shape)
    return kept, sums
