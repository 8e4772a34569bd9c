"""The gradient of a linear layer's bias, which is a sum over rows; after a ReLU, together with that of the ReLU."""

from typing import Any

import torch
from torch import Tensor

from nmt.model.kernels.backend import is_traced, sum_dtype, uses_triton
from nmt.model.kernels.c import rows


def rectifier_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of x (T, d) and its sum over the rows (d,), given that of relu(x), and relu(x) itself.

    The sum is in float32 or more.
    """
    if rows.computes_on_rows_in_c(gradient):
        return rows.rectifier_gradient(gradient, rectified)
    call = torch.ops.nmt.rectifier_gradient if is_traced() else _compute_gradient
    masked, total = call(gradient, rectified)
    return masked, total


def _compute_gradient(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    if uses_triton(gradient):
        from nmt.model.kernels import triton_rectifier  # noqa: PLC0415 - imports Triton

        return triton_rectifier.rectifier_gradient(gradient, rectified)
    masked = torch.ops.aten.threshold_backward(gradient, rectified, 0)
    return masked, masked.sum(0, dtype=sum_dtype(gradient))


def sum_rows(matrix: Tensor) -> Tensor:
    """Return the sum over the rows of a matrix (T, d): (d,), in float32.

    On an H200, PyTorch's own takes 40 μs for 25,000 rows of 512 in bf16, the kernel 22 μs.
    """
    if rows.computes_on_rows_in_c(matrix):
        return rows.sum_rows(matrix)
    if uses_triton(matrix) and not is_traced():
        from nmt.model.kernels import triton_rectifier  # noqa: PLC0415 - imports Triton

        return triton_rectifier.sum_rows(matrix)
    # a CPU would first copy all rows to float32
    return matrix.sum(0, dtype=torch.float32) if matrix.is_cuda else matrix.sum(0).float()


_rectifier_gradient = torch.library.custom_op("nmt::rectifier_gradient", _compute_gradient, mutates_args=())


@_rectifier_gradient.register_fake
def _(gradient: Tensor, rectified: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return gradient.new_empty(gradient.shape), gradient.new_empty(gradient.shape[1:], dtype=sum_dtype(gradient))
