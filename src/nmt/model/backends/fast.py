"""Products whose weights are kept in float32 and multiplied in a lower precision, with gradients in float32."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.activations import Activation
from nmt.model.attention import exact_type, joined
from nmt.model.backends.eager import Eager
from nmt.model.dropout import Dropout
from nmt.model.modules import Linear


class Fast(Eager):
    """What the backends for CPUs and GPUs share. Subclasses override the steps of a product and of its gradient."""

    def linear(self, rows: Tensor, layer: nn.Linear) -> Tensor:
        """See `Eager.linear`; copies of the weights are multiplied if there are any."""
        return self._product_with(rows, layer, rectify=False)

    def split(self, product: Tensor, widths: list[int]) -> tuple[Tensor, ...]:
        """See `Eager.split`: the gradients of parts that are adjacent in memory are not copied."""
        if torch.compiler.is_compiling():
            return super().split(product, widths)
        return cast(tuple[Tensor, ...], _Split.apply(product, widths))  # type: ignore[no-untyped-call]

    def feed_forward(
        self, rows: Tensor, inner: nn.Module, activation: Activation, dropout: Dropout | None, outer: nn.Module
    ) -> Tensor:
        """See `Eager.feed_forward`; a ReLU is part of the product before it."""
        if activation.function is not F.relu or activation.gated or not isinstance(inner, Linear):
            return super().feed_forward(rows, inner, activation, dropout, outer)
        hidden = self._product_with(rows, inner, rectify=True)
        projected: Tensor = outer(hidden if dropout is None else self.dropout(hidden, dropout))
        return projected

    def _product_with(self, rows: Tensor, layer: nn.Linear, *, rectify: bool) -> Tensor:
        copies = getattr(layer, "copies", None) or {"weight": layer.weight, "bias": layer.bias}
        weights = layer.weight, layer.bias, copies["weight"], copies["bias"]
        return cast(Tensor, _Product.apply(self, rows, *weights, rectify))  # type: ignore[no-untyped-call]

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor, *, rectify: bool) -> Tensor:
        """Return x W^T + b, or the ReLU of it, without a gradient."""
        product = F.linear(rows, weight, bias)
        return product.relu_() if rectify else product

    def rectifier_gradient(self, gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient of x (T, d) and its sum over the rows (d,), given that of relu(x), and relu(x) itself."""
        masked = torch.ops.aten.threshold_backward(gradient, rectified, 0)
        return masked, self.sum_rows(masked)

    def sum_rows(self, rows: Tensor) -> Tensor:
        """Return the sum over the rows of a matrix (T, d): (d,), in float32 or more."""
        return rows.sum(0, dtype=exact_type(rows))


class _Product(torch.autograd.Function):
    """x W^T + b, or the ReLU of it, with copies of W and b, whose gradients go to the float32 weights.

    The gradients of the weights are sums over thousands of tokens, so a GPU returns them in float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        backend: Fast,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        weight_copy: Tensor,
        bias_copy: Tensor,
        rectify: bool,
    ) -> Tensor:
        product = backend.product(rows, weight_copy, bias_copy, rectify=rectify)
        ctx.save_for_backward(rows, weight_copy, product if rectify else None)
        ctx.backend = backend
        return product

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        backend: Fast = ctx.backend
        rows, weight, rectified = ctx.saved_tensors
        needs_rows, needs_weight, needs_bias = ctx.needs_input_grad[1:4]
        bias_gradient = None
        if rectified is not None:
            gradient, bias_gradient = backend.rectifier_gradient(gradient, rectified)
        elif needs_bias:
            bias_gradient = backend.sum_rows(gradient)
        rows_gradient = backend.multiply(gradient, weight) if needs_rows else None
        weight_gradient = None
        if needs_weight:
            exact = exact_type(rows)
            weight_gradient = backend.exact_product(gradient.t(), rows, exact).to(exact)
        return None, rows_gradient, weight_gradient, bias_gradient, None, None, None


class _Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, product: Tensor, widths: list[int]) -> tuple[Tensor, ...]:
        return tuple(product.split(widths, -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return joined(gradients), None
