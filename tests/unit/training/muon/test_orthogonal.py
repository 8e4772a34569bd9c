"""Orthogonal matrices by Newton-Schulz iterations, against the same polynomials of singular values."""

import pytest
import torch
from torch import Tensor

from nmt.training.muon import ITERATIONS, POLYNOMIAL, SAFETY, orthogonal

SHAPES = [(16, 16), (16, 24), (16, 64), (64, 16), (1, 7), (7, 1)]


def by_singular_values(matrix: Tensor) -> Tensor:
    """Return what `orthogonal` computes, from the singular value decomposition in float64."""
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = values / (SAFETY * values.pow(8).sum().pow(1 / 8))
    a, b, c = POLYNOMIAL
    for _ in range(ITERATIONS):
        values = a * values + b * values**3 + c * values**5
    product: Tensor = (left * values) @ right
    return product


@pytest.mark.parametrize("narrow", [0, 128])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("precision", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5), (torch.bfloat16, 0.15)]
)
def test_singular_values_pass_through_the_polynomials(
    shape: tuple[int, int], precision: torch.dtype, tolerance: float, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.training.muon.NARROW", narrow)
    torch.manual_seed(1)
    matrices = torch.randn(3, *shape, dtype=torch.float64) * torch.tensor([1e-6, 1.0, 1e6]).view(3, 1, 1)
    if precision == torch.float32:
        matrices = matrices.float()
    found = orthogonal(matrices, precision)
    assert found.dtype == matrices.dtype
    for matrix, result in zip(matrices, found, strict=True):
        exact = by_singular_values(matrix)
        assert (result.double() - exact).norm() < tolerance * exact.norm()


def test_singular_values_end_near_one() -> None:
    torch.manual_seed(2)
    for shape in ((64, 64), (64, 256)):
        left, _, right = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
        matrix = (left * torch.logspace(0, -1.9, 64, dtype=torch.float64)) @ right
        values = torch.linalg.svdvals(orthogonal(matrix[None], torch.float64)[0])
        assert values.min() > 0.67
        assert values.max() < 1.21


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_zeros_stay_zeros(precision: torch.dtype) -> None:
    for shape in SHAPES:
        assert torch.equal(orthogonal(torch.zeros(2, *shape), precision), torch.zeros(2, *shape))


def test_each_matrix_is_alone() -> None:
    torch.manual_seed(3)
    matrices = torch.randn(4, 8, 32)
    together = orthogonal(matrices, torch.float32)
    for matrix, result in zip(matrices, together, strict=True):
        torch.testing.assert_close(orthogonal(matrix[None], torch.float32)[0], result)
