"""Muon for the matrices of the layers and Adam for all other parameters, as one optimizer."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.compute.workers import concurrent_workers, run_in_threads
from nmt.config.training import TrainingConfig
from nmt.model.interface import TranslationModel, trainable
from nmt.model.modules import Linear
from nmt.training.optimizer import adam_groups

MOMENTUM = 0.95
"""The decay rate of the mean gradient."""
ADAM_SIZE = 0.2
"""The root mean square of Adam's updates, divided by the learning rate."""
MAX_NUMBERS = 1 << 24
"""The most numbers in the matrices that a process makes orthogonal together, which bounds the memory for them."""
NUMBERS_PER_CORE = 1 << 16
"""The most numbers in several matrices that a core makes orthogonal together: they and their products fit its cache."""

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
"""Divides matrices of zeros, and their products, which stay zero."""
NARROW = 128
"""The most rows of a product that is computed as a whole although it is symmetric: three products take longer."""
WIDE = 2
"""The ratio of the longer to the shorter side from which on iterating on X Xᵀ takes fewer products than on X."""


def muon(model: TranslationModel, config: TrainingConfig, precision: torch.dtype) -> torch.optim.Optimizer:
    """Return Muon (Jordan et al., 2024) for the matrices of the layers, and Adam for word vectors, norms and biases."""
    layers = [module.weight for module in model.modules() if isinstance(module, Linear)]
    matrices = [weight for weight in layers if weight.requires_grad]
    chosen = set(map(id, matrices))
    others = [parameter for parameter in trainable(model) if id(parameter) not in chosen]
    if precision == torch.float16:  # its range is too small for products of small singular values
        precision = torch.float32
    return Muon(matrices, others, config, precision)


class Muon(torch.optim.AdamW):
    """Adam, but matrices move by the same length in all directions: the running mean of gradients, made orthogonal.

    The steps are scaled to the size of Adam's (Liu et al., 2025) and by `training.muon_rate`. Unlike PyTorch's Muon,
    this one multiplies in the precision of the run and in fewer iterations: in float32 on a CPU each thread a few
    matrices of a shape, elsewhere all of a shape together. Several processes divide the matrices of each shape.
    """

    found_inf: Tensor | None = None
    """Not 0 if the next step is to change nothing: a GPU reads it, so that nobody waits for the device."""

    def __init__(
        self, matrices: list[Tensor], others: Sequence[nn.Parameter], config: TrainingConfig, precision: torch.dtype
    ) -> None:
        betas = config.adam_beta1, config.adam_beta2
        super().__init__(adam_groups(others, config), lr=0.0, betas=betas, eps=config.adam_eps, fused=True)
        self.param_groups.insert(0, {"params": matrices, "lr": 0.0, "weight_decay": config.weight_decay})
        self._precision, self._rate = precision, config.muon_rate

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a loaded state as it is: Adam's own method expects its averages for the matrices, too."""
        torch.optim.Optimizer.__setstate__(self, state)

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient, or nothing."""
        assert closure is None
        taken = None
        if self.found_inf is not None and self.found_inf.is_cuda:
            taken = self.found_inf == 0
        elif self.found_inf is not None and self.found_inf:
            return
        group, *adam = self.param_groups
        self.update_matrices(group, taken)
        self.param_groups = adam
        super().step()
        self.param_groups = [group, *adam]

    def update_matrices(self, group: dict[str, Any], taken: Tensor | None = None) -> None:
        """Update matrices, or leave them and their means as they are if `taken` is false."""
        update = partial(self._update, group["lr"] * self._rate, group["weight_decay"], taken)
        matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
        is_on_cpu = all(matrix.device.type == "cpu" for matrix in matrices)
        if self._precision == torch.float32 and is_on_cpu and distributed.world_size() == 1:
            parts = list(_of_one_shape(matrices, NUMBERS_PER_CORE))
            run_in_threads(update, parts, concurrent_workers(len(parts)))
        else:
            for alike in _of_one_shape(matrices, MAX_NUMBERS):
                update(alike)

    @torch.no_grad()  # a thread has its own mode
    def _update(self, rate: float, decay: float, taken: Tensor | None, matrices: list[Tensor]) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum_buffer"] = torch.zeros_like(matrix)
        means = [self.state[matrix]["momentum_buffer"] for matrix in matrices]
        if taken is not None:  # a mean that moves towards itself stays
            gradients = [each.where(taken, mean) for mean, each in zip(means, gradients, strict=True)]
        torch._foreach_lerp_(means, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, means, MOMENTUM)  # Nesterov's step
        directions = distributed.compute_in_parts(self._directions, ahead)
        if taken is not None:
            directions = directions * taken
        if decay:
            kept = 1 - rate * decay
            torch._foreach_mul_(matrices, kept if taken is None else matrices[0].new_full((), kept).where(taken, 1))
        size = ADAM_SIZE * max(matrices[0].shape) ** 0.5
        torch._foreach_add_(matrices, directions.unbind(), alpha=-rate * size)

    def _directions(self, matrices: Sequence[Tensor]) -> Tensor:
        return orthogonal(torch.stack(list(matrices)) if len(matrices) > 1 else matrices[0][None], self._precision)


def _of_one_shape(matrices: list[Tensor], numbers: int) -> Iterator[list[Tensor]]:
    """Yield lists of matrices of the same shape; a process's part of each has at most this many numbers, or one matrix.

    The lists do not depend on the number of threads, so neither does what is computed.
    """
    by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for matrix in matrices:
        by_shape[matrix.shape].append(matrix)
    for shape, alike in by_shape.items():
        most = max(1, numbers // shape.numel()) * distributed.world_size()
        yield from (alike[first : first + most] for first in range(0, len(alike), most))


def orthogonal(matrices: Tensor, precision: torch.dtype) -> Tensor:
    """Return the matrices with singular values near 1, in the shape (count, rows, columns) and type that they have.

    Args:
        matrices: Matrices of one shape.
        precision: The type of the products. In bf16, X Xᵀ would lose the small singular values of X, so each iteration
            begins with X; in float32, the iterations of matrices with one long side run on X Xᵀ alone.
    """
    rows, columns = matrices.shape[1:]
    is_wide = max(rows, columns) >= WIDE * min(rows, columns) and precision != torch.bfloat16
    rounded = matrices.to(precision)
    scaled = rounded / _power_of_two(rounded)
    return (_by_gram_matrix if is_wide else _directly)(scaled).to(matrices.dtype)


def _power_of_two(matrices: Tensor) -> Tensor:
    """Return the power of two next to the largest number of each matrix; dividing by it rounds nothing.

    The mean gradient of a layer that no longer gets one becomes ever smaller. If its products underflowed, its norm
    would be taken for too small, and the iterations would diverge.
    """
    largest = torch.linalg.vector_norm(matrices, torch.inf, dim=(1, 2), keepdim=True).clamp(min=SMALLEST)
    exact = largest.to(torch.promote_types(largest.dtype, torch.float32))  # GPUs have no `frexp` of bf16
    power: Tensor = exact / torch.frexp(exact).mantissa
    return power.to(matrices.dtype)


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
    product = polynomial = _polynomial(gram, square)
    for _ in range(ITERATIONS - 1):
        gram = _symmetric_product(_symmetric_product(polynomial, gram), polynomial)
        polynomial = _polynomial(gram, _symmetric_product(gram, gram))
        product = _symmetric_product(polynomial, product)
    return _multiply(product.mul_(scale), matrices)


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

    The scale is 1 / (sum of σ⁸)^⅛. The trace of X Xᵀ is divided out before its square is computed.
    """
    gram = _gram_matrix(matrices)
    exact = torch.promote_types(gram.dtype, torch.float32)
    trace = gram.diagonal(dim1=1, dim2=2).sum(-1, dtype=exact).clamp(min=SMALLEST)[:, None, None]
    gram.div_(trace)
    square = _symmetric_product(gram, gram)
    norm = torch.linalg.matrix_norm(square.to(exact), keepdim=True)
    scale = 1 / (SAFETY * norm.clamp(min=SMALLEST).pow(0.25))
    return gram.mul_(scale.square()), square.mul_(scale.pow(4)), scale / trace.sqrt()
