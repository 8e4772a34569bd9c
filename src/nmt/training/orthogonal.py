"""The nearest matrices with orthonormal rows or columns, by Newton-Schulz iterations."""

from collections.abc import Iterator
from functools import reduce

import torch
from torch import Tensor

ITERATIONS = 4
A, B, C = 3.4445, -4.7750, 2.0315
"""Muon's coefficients of p(x) = Ax + Bx³ + Cx⁵ (Jordan et al., 2024), which each iteration applies to singular values.

After four iterations, those from 0.006 to 1 are between 0.68 and 1.20, and smaller ones are multiplied by 141. With the
Frobenius norm, which is less tight than the one below, Muon needs five. Polynomials that are steeper at 0, or flatter
in the end, did not train better, and some lose the small singular values to rounding in bf16.
"""
SAFETY = 1.01
"""The factor by which the norm is enlarged, so that rounding lifts no singular value above 1."""
SMALLEST_NORM = 1e-20
"""Divides a matrix of zeros, which stays zero."""
WIDE = 2
"""The ratio of columns to rows from which on iterating on X Xᵀ takes fewer products than iterating on X."""


def orthogonal(matrices: Tensor, precision: torch.dtype) -> Tensor:
    """Return the matrices with singular values near 1, in the shape (count, rows, columns) and type that they have.

    Args:
        matrices: Matrices of one shape.
        precision: The type of the products. In bf16, X Xᵀ would lose the small singular values of X, so each iteration
            begins with X; in float32, the iterations of wide matrices run on X Xᵀ alone.
    """
    if matrices.size(1) > matrices.size(2):
        return orthogonal(matrices.mT, precision).mT
    norms = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True).clamp(min=SMALLEST_NORM)
    scaled = (matrices / norms).to(precision)
    is_wide = matrices.size(2) >= WIDE * matrices.size(1) and precision != torch.bfloat16
    return (_by_gram_matrix(scaled) if is_wide else _directly(scaled)).to(matrices.dtype)


def _directly(matrices: Tensor) -> Tensor:
    """Multiply X by a polynomial of X Xᵀ in each iteration."""
    for number in range(ITERATIONS):
        gram = _symmetric_product(matrices, matrices.mT)
        square = _symmetric_product(gram, gram)
        if number == 0:
            scale = _inverse_norm(square)
            matrices, gram, square = matrices * scale, gram * scale**2, square * scale**4
        matrices = torch.baddbmm(matrices, B * gram + C * square, matrices, beta=A)
    return matrices


def _by_gram_matrix(matrices: Tensor) -> Tensor:
    """Multiply X in the end by the product of all polynomials, which are polynomials of X Xᵀ."""
    gram = _symmetric_product(matrices, matrices.mT)
    square = _symmetric_product(gram, gram)
    scale = _inverse_norm(square)
    polynomials = _polynomials(gram * scale**2, square * scale**4)
    return reduce(lambda product, each: _symmetric_product(each, product), polynomials) @ (matrices * scale)


def _polynomials(gram: Tensor, square: Tensor) -> Iterator[Tensor]:
    """Yield the polynomial by which each iteration multiplies X, given X Xᵀ and its square."""
    for number in range(ITERATIONS):
        polynomial = B * gram + C * square
        polynomial.diagonal(dim1=1, dim2=2).add_(A)
        yield polynomial
        if number + 1 < ITERATIONS:
            gram = _symmetric_product(_symmetric_product(polynomial, gram), polynomial)
            square = _symmetric_product(gram, gram)


def _symmetric_product(left: Tensor, right: Tensor) -> Tensor:
    """Return a product that is symmetric: in float32 three of its quarters are computed, in bf16 that takes longer."""
    if left.dtype == torch.bfloat16:
        return left @ right
    half = left.size(1) // 2
    product = left.new_empty(len(left), left.size(1), right.size(2))
    product[:, :half] = left[:, :half] @ right
    product[:, half:, half:] = left[:, half:] @ right[:, :, half:]
    product[:, half:, :half] = product[:, :half, half:].mT
    return product


def _inverse_norm(square: Tensor) -> Tensor:
    """Return 1 / (sum of σ⁸)^⅛, given (X Xᵀ)²: a scale with which the largest singular value is at most 1."""
    norm = torch.linalg.matrix_norm(square.to(torch.promote_types(square.dtype, torch.float32)), keepdim=True)
    scale: Tensor = 1 / (SAFETY * norm.clamp(min=SMALLEST_NORM).pow(0.25))
    return scale.to(square.dtype)
