"""The operations of nmt that are one kernel on newer GPUs, and many operations of PyTorch on those without bf16."""

from collections.abc import Callable
from typing import Any

from nmt.model.kernels import rectifier, residual, softmax


def plain_operations() -> dict[str, Callable[..., Any]]:
    """Return the implementation in PyTorch of each operation, by its name."""
    operations = [
        residual._dropout_add_norm,
        residual._dropout_add_norm_backward,
        residual._dropout_add,
        residual._dropout_backward,
        rectifier._rectifier_gradient,
        softmax._softmax_gradient_,
    ]
    return {each._qualname: each._init_fn for each in operations}
