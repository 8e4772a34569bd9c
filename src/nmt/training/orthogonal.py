"""The nearest matrices with orthonormal rows or columns, by Newton-Schulz iterations."""

from collections.abc import Iterator
from functools import reduce

import torch
from torch import Tensor

ITERATIONS = 4
POLYNOMIAL = (3.4445, -4.7750, 2.0315)
"""Coefficients of ax + bx³ + cx⁵, Muon's (Jordan et al., 2024), which each iteration applies to the singular values.

After four iterations, those from 0.006 to 1 are between 0.68 and 1.20, and smaller ones are multiplied by 141. With the
Frobenius norm, which is less tight than the one below, Muon needs five. Other polynomials for each iteration, each the
nearest to 1 on the interval that those before it leave (Amsel et al., 2025, The Polar Express), save an iteration but
trained worse: a development loss of 3.43 to 3.44 instead of 3.40 after 500 steps of experiment=multi30k.
"""
SAFETY = 1.01
"""The factor by which the norm is enlarged, so that rounding lifts no singular value above 1."""
SMALLEST = 1e-36
"""Divides the products of a matrix of zeros, which stays zero."""
NARROW = 128
"""The most rows of a product that is computed as a whole although it is symmetric: three products take longer."""
WIDE = 2
"""The ratio of the longer to the shorter side from which on iterating on X Xᵀ takes fewer products than on X."""


def orthogonal(matrices: Tensor, precision: torch.dtype) -> Tensor:
    """Return the matrices with singular values near 1, in the shape (count, rows, columns) and type that they have.

    Args:
        matrices: Matrices of one shape.
        precision: The type of the products. In bf16, X Xᵀ would lose the small singular values of X, so each iteration
            begins with X; in float32, the iterations of matrices with one long side run on X Xᵀ alone.
    """
    rows, columns = matrices.shape[1:]
    is_wide = max(rows, columns) >= WIDE * min(rows, columns) and precision != torch.bfloat16
    return (_by_gram_matrix if is_wide else _directly)(matrices.to(precision)).to(matrices.dtype)


def _directly(matrices: Tensor) -> Tensor:
    """Multiply X by a polynomial of X Xᵀ in each iteration."""
    gram, square, scale = _scaled_products(matrices)
    matrices = _multiply(_polynomial(gram, square).mul_(scale), matrices)
    for _ in range(ITERATIONS - 1):
        gram = _gram_matrix(matrices)
        matrices = _multiply(_polynomial(gram, _symmetric_product(gram, gram)), matrices)
    return matrices


def _by_gram_matrix(matrices: Tensor) -> Tensor:
    """Multiply X in the end by the product of all polynomials, which are polynomials of X Xᵀ."""
    gram, square, scale = _scaled_products(matrices)
    product = reduce(lambda left, right: _symmetric_product(right, left), _polynomials(gram, square))
    return _multiply(product.mul_(scale), matrices)


def _polynomials(gram: Tensor, square: Tensor) -> Iterator[Tensor]:
    """Yield the polynomial by which each iteration multiplies X, given X Xᵀ and its square."""
    for number in range(ITERATIONS):
        polynomial = _polynomial(gram, square)
        yield polynomial
        if number + 1 < ITERATIONS:
            gram = _symmetric_product(_symmetric_product(polynomial, gram), polynomial)
            square = _symmetric_product(gram, gram)


def _polynomial(gram: Tensor, square: Tensor) -> Tensor:
    """Return a + b X Xᵀ + c (X Xᵀ)², in the place of the square."""
    a, b, c = POLYNOMIAL
    polynomial = square.mul_(c).add_(gram, alpha=b)
    polynomial.diagonal(dim1=1, dim2=2).add_(a)
    return polynomial


def _gram_matrix(matrices: Tensor) -> Tensor:
    """Return X Xᵀ, or Xᵀ X if that is smaller."""
    is_tall = matrices.size(1) > matrices.size(2)
    return _symmetric_product(matrices.mT, matrices) if is_tall else _symmetric_product(matrices, matrices.mT)


def _multiply(symmetric: Tensor, matrices: Tensor) -> Tensor:
    """Return the product of X with a symmetric matrix on its shorter side."""
    return matrices @ symmetric if matrices.size(1) > matrices.size(2) else symmetric @ matrices


def _symmetric_product(left: Tensor, right: Tensor) -> Tensor:
    """Return a product that is symmetric: in float32 three of its quarters are computed, unless that takes longer."""
    if left.dtype == torch.bfloat16 or left.size(1) <= NARROW:
        return left @ right
    half = left.size(1) // 2
    product = left.new_empty(len(left), left.size(1), right.size(2))
    torch.bmm(left[:, :half], right, out=product[:, :half])
    torch.bmm(left[:, half:], right[:, :, half:], out=product[:, half:, half:])
    product[:, half:, :half] = product[:, :half, half:].mT
    return product


def _scaled_products(matrices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return X Xᵀ and its square for a scaled X whose largest singular value is at most 1, and the scale.

    The scale is 1 / (sum of σ⁸)^⅛. The trace of X Xᵀ is divided out before, because small gradients would underflow.
    """
    gram = _gram_matrix(matrices)
    exact = torch.promote_types(gram.dtype, torch.float32)
    trace = gram.diagonal(dim1=1, dim2=2).sum(-1, dtype=exact).clamp(min=SMALLEST)[:, None, None]
    gram.div_(trace)
    square = _symmetric_product(gram, gram)
    norm = torch.linalg.matrix_norm(square.to(exact), keepdim=True)
    scale = 1 / (SAFETY * norm.clamp(min=SMALLEST).pow(0.25))
    return gram.mul_(scale.square()), square.mul_(scale.pow(4)), scale / trace.sqrt()
