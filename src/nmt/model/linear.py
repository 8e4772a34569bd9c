"""Matrix products whose weights are kept in float32 and multiplied in a lower precision."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.compute.machine import HALF_PRECISIONS
from nmt.model import products
from nmt.model.kernels.c.library import trains_in_c
from nmt.model.kernels.c.rows import computes_on_rows_in_c
from nmt.model.kernels.rectifier import rectifier_gradient, sum_rows
from nmt.model.products import prefers_onednn

Copies = Mapping[str, Tensor]
"""Copies of a module's parameters in another precision, by the names of the parameters."""


class Linear(nn.Linear):
    """x W^T + b, with copies of the weights in the precision of x if there are any (`model.working_weights`)."""

    copies: Copies | None = None

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_in) to (..., d_out)."""
        return self.multiply(rows, rectify=False) if self.multiplies(rows) else super().forward(rows)

    def multiplies(self, rows: Tensor) -> bool:
        """Return whether `multiply` takes the place of PyTorch's product and of its gradient."""
        return self.copies is not None or prefers_onednn(rows) or (rows.dim() == 2 and trains_in_c(rows))

    def multiply(self, rows: Tensor, *, rectify: bool) -> Tensor:
        """Return x W^T + b, or the ReLU of it."""
        copies = self.copies or {"weight": self.weight, "bias": self.bias}
        weights = self.weight, self.bias, copies["weight"], copies["bias"]
        return cast(Tensor, _Product.apply(rows, *weights, rectify))  # type: ignore[no-untyped-call]


def activated(linear: nn.Module, rows: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """Return activation(linear(rows)); a ReLU becomes part of the product if both are one operation."""
    if isinstance(linear, Linear) and activation is F.relu and linear.multiplies(rows):
        return linear.multiply(rows, rectify=True)
    return activation(linear(rows))


class _Product(torch.autograd.Function):
    """x W^T + b with copies of W and b, whose gradients go to the float32 weights.

    The gradients of the weights are sums over thousands of tokens, so a GPU returns them in float32.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, weight_copy: Tensor, bias_copy: Tensor, rectify: bool
    ) -> Tensor:
        if rectify and rows.is_cuda:
            product = torch._addmm_activation(bias_copy, rows, weight_copy.t())
        elif rectify:
            product = products.linear(rows, weight_copy, bias_copy).relu_()
        else:
            product = products.linear(rows, weight_copy, bias_copy)
        ctx.save_for_backward(rows, weight_copy, product if rectify else None)
        return product

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, rectified = ctx.saved_tensors
        needs_rows, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        bias_gradient = None
        if rectified is not None and (gradient.is_cuda or computes_on_rows_in_c(gradient)):
            gradient, bias_gradient = rectifier_gradient(gradient, rectified)
        elif rectified is not None:
            gradient = torch.ops.aten.threshold_backward(gradient, rectified, 0)
        if bias_gradient is None and needs_bias:
            bias_gradient = sum_rows(gradient)
        rows_gradient = products.multiply(gradient, weight) if needs_rows else None
        weight_gradient = products.exact_product(gradient.t(), rows, torch.float32).float() if needs_weight else None
        return rows_gradient, weight_gradient, bias_gradient, None, None, None


def split_product(product: Tensor, widths: list[int]) -> tuple[Tensor, ...]:
    """Return parts (T, width) of a product (T, sum of widths) whose gradient is not copied if it is in one piece."""
    if not (product.is_cuda or trains_in_c(product)) or torch.compiler.is_compiling():
        return tuple(product.split(widths, -1))
    return cast(tuple[Tensor, ...], _Split.apply(product, widths))  # type: ignore[no-untyped-call]


class _Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, product: Tensor, widths: list[int]) -> tuple[Tensor, ...]:
        return tuple(product.split(widths, -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return joined(gradients), None


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return matrices (T, width) side by side: a view if they are adjacent columns of one matrix, else a copy."""
    rows, width = len(parts[0]), sum(part.shape[1] for part in parts)
    start = parts[0].storage_offset()
    for part in parts:
        same = part.untyped_storage()._cdata == parts[0].untyped_storage()._cdata
        if not same or part.stride() != (width, 1) or part.storage_offset() != start:
            return torch.cat(list(parts), -1)
        start += part.shape[1]
    return parts[0].as_strided((rows, width), (width, 1))


def look_up(tokens: Tensor, matrix: Tensor, copy: Tensor | None) -> Tensor:
    """Return the rows of `matrix` (V, d) for tokens (T,), taken from a copy in another precision if there is one."""
    if copy is None and matrix.dtype in HALF_PRECISIONS and matrix.requires_grad and torch.is_grad_enabled():
        copy = matrix
    if copy is None:
        return F.embedding(tokens, matrix)
    return cast(Tensor, _LookUp.apply(tokens, matrix, copy))  # type: ignore[no-untyped-call]


class _LookUp(torch.autograd.Function):
    """Rows of a copy, whose gradients are added up in float32: a frequent token has thousands of them."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, matrix: Tensor, copy: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.words, ctx.dtype = len(matrix), torch.promote_types(matrix.dtype, torch.float32)
        return F.embedding(tokens, copy)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        (tokens,) = ctx.saved_tensors
        return (
            None,
            torch.ops.aten.embedding_dense_backward(gradient.to(ctx.dtype), tokens, ctx.words, -1, False),
            None,
        )
