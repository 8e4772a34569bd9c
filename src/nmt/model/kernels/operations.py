"""How PyTorch sees the kernels in Triton."""

from collections.abc import Callable
from typing import Any

import torch


def is_traced() -> bool:
    """Return whether a compiler, or a mode that counts or imitates operations, must see a call as one operation.

    Otherwise kernels are launched directly: a custom operation of PyTorch costs the processor several times as much.
    """
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def operation(imitation: Callable[..., Any], changed: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Make a function that launches kernels an operation of PyTorch where one is needed.

    Args:
        imitation: Returns results of the same shapes and types, without values.
        changed: Names of the tensors that the function changes.
    """

    def decorate(launch: Callable[..., Any]) -> Callable[..., Any]:
        name = f"nmt::{launch.__name__.strip('_')}"
        traced = torch.library.custom_op(name, launch, mutates_args=changed)
        traced.register_fake(imitation)

        def call(*arguments: Any) -> Any:
            return traced(*arguments) if is_traced() else launch(*arguments)

        return call

    return decorate
