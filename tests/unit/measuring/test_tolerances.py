"""The tolerances of nmt.measuring.accuracy accept what a correct GPU computes, and nothing much worse.

TF32 is emulated on the CPU: the inputs of float32 products lose 13 bits of mantissa, as in a GPU's tensor cores.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.compute.machine import Machine
from nmt.measuring.accuracy import (
    LOSS_TOLERANCES,
    TOLERANCES,
    exact_step,
    small_run,
    training_step,
)
from nmt.model.operation_errors import relative_error

DROPPED_BITS = 13
PRODUCTS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::baddbmm": (1, 2),
    "mkldnn::_linear_pointwise": (0, 1),
}
"""Matrix products, and which of their arguments are multiplied."""


class RoundedProducts(TorchDispatchMode):
    """Rounds the inputs of all float32 matrix products, forward and backward."""

    def __init__(self, dropped_bits: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dropped_bits, self.rounded = dropped_bits, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = list(args)
        for index in PRODUCTS.get(func._schema.name, ()):
            if args[index].dtype == torch.float32:
                arguments[index] = self._round(args[index])
                self.rounded += 1
        return func(*arguments, **(kwargs or {}))

    def _round(self, numbers: Tensor) -> Tensor:
        """Round to the nearest number whose last bits are zero."""
        bits = numbers.contiguous().view(torch.int32)
        half = 1 << (self.dropped_bits - 1)
        return ((bits + half) & ~((1 << self.dropped_bits) - 1)).view(torch.float32)


exact_results = cache(exact_step)


def errors(dropped_bits: int) -> tuple[float, float]:
    """Return the relative errors of the loss and of the gradient with products of such inputs."""
    exact = exact_results()
    with RoundedProducts(dropped_bits) as products:
        step = training_step(small_run("cpu"), Machine(torch.device("cpu"), torch.float32))
    assert products.rounded > 0
    return abs(step.loss / exact.loss - 1), relative_error(step.gradient, exact.gradient)


def test_a_gpu_that_rounds_to_tf32_is_correct_and_would_fail_the_tolerance_of_float32() -> None:
    loss, gradient = errors(DROPPED_BITS)
    assert loss < LOSS_TOLERANCES["tf32"]
    assert TOLERANCES["fp32"] < gradient < TOLERANCES["tf32"] / 2


def test_products_with_sixteen_times_the_error_are_wrong() -> None:
    loss, gradient = errors(DROPPED_BITS + 4)
    assert loss > LOSS_TOLERANCES["tf32"] or gradient > TOLERANCES["tf32"]
