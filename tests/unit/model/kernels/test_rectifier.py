"""The gradient of a ReLU and of the bias before it, against torch in float64."""

import pytest
import torch

from nmt.model.kernels.backend import uses_triton
from nmt.model.kernels.rectifier import rectifier_gradient, sum_rows
from tests.unit.model.kernels import plain_only


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (50, 7), (40, 130), (0, 3)])
def test_gradient_and_its_sum_equal_those_of_torch(rows: int, width: int, dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    gradient, rows_before = torch.randn(2, rows, width, generator=random).to(dtype)
    bias = torch.randn(width, generator=random).double().requires_grad_()
    before = (rows_before.double() + bias).to(dtype)
    rectified = before.relu()
    (expected,) = torch.autograd.grad(before.double().relu(), bias, gradient.double())
    masked, total = rectifier_gradient(gradient, rectified.detach())
    assert masked.equal(gradient.where(rectified > 0, 0))
    assert total.dtype == torch.float32
    torch.testing.assert_close(total.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (50, 7), (3000, 130), (0, 3)])
def test_sum_over_rows_is_in_float32(rows: int, width: int, dtype: torch.dtype) -> None:
    numbers = torch.randn(rows, width, generator=torch.Generator().manual_seed(1)).to(dtype)
    total = sum_rows(numbers)
    tolerance = 1e-5 if uses_triton(numbers) or dtype == torch.float32 else 1e-2  # a CPU adds up in bf16
    assert total.dtype == torch.float32
    assert (total.double() - numbers.double().sum(0)).norm() <= tolerance * numbers.double().sum(0).norm()


@plain_only
def test_operation_is_registered_correctly() -> None:
    torch.library.opcheck(torch.ops.nmt.rectifier_gradient.default, (torch.randn(3, 7), torch.rand(3, 7)))
