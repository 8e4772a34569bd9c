"""What the operations of this package share: whether they use Triton kernels, and the precision of their sums."""

import functools
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nmt.compute.machine import HALF_PRECISIONS, has_bf16, is_amd


class _Wanted:
    triton = True
    """Whether this process may use the kernels in Triton."""


def want_triton(wanted: bool) -> None:
    """Let this process use the kernels in Triton from now on where a device has them, or PyTorch's operations only."""
    _Wanted.triton = wanted


def has_triton() -> bool:
    """Return whether this process may use Triton, and it is installed; it comes with PyTorch's builds for GPUs."""
    return _Wanted.triton and _is_installed()


def uses_triton(tensor: Tensor) -> bool:
    """Return whether a kernel of Triton computes an operation on this tensor: on a GPU, or with Triton's interpreter.

    GPUs without bf16 use plain PyTorch: Triton no longer supports all of them.
    """
    if tensor.dtype == torch.float64 or not has_triton():
        return False
    if tensor.is_cuda:
        return not is_old_gpu(tensor.device)
    return os.environ.get("TRITON_INTERPRET") == "1"


def is_old_gpu(device: torch.device) -> bool:
    """Return whether a device is a GPU without bf16, on which neither Triton's kernels nor flash attention run."""
    return device.type == "cuda" and not _has_bf16(device)


def has_fused_residual(device: torch.device) -> bool:
    """Return whether the residual connection is one kernel on a GPU: in plain PyTorch it takes far more operations."""
    return device.type == "cuda" and has_triton() and not is_old_gpu(device)


def has_flash_attention(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether a device has flash attention in this precision: GPUs of NVIDIA that multiply in bf16 do.

    Some releases for AMD's GPUs do not support windows in `varlen_attn`, which make it causal.
    """
    if device.type != "cuda" or is_amd() or precision not in HALF_PRECISIONS:
        return False
    return precision == torch.bfloat16 or not is_old_gpu(device)


def is_traced() -> bool:
    """Return whether a compiler, or a mode that counts or imitates operations, must see a call as one operation.

    Otherwise kernels are launched directly: a custom operation of PyTorch costs the processor several times as much.
    """
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def launched_directly(
    compute: Callable[..., Tensor],
    save: Callable[[Any, tuple[Any, ...], Tensor], None],
    gradients: Callable[[Any, Tensor], tuple[Tensor | None, ...]],
) -> Callable[..., Tensor]:
    """Return an operation with gradients that is no custom operation, for calls that nobody traces.

    Args:
        compute: Returns the result.
        save: Takes the context, the inputs and the result, and keeps what the gradients need.
        gradients: Returns those of the inputs, given the context and the gradient of the result.
    """

    class Launched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Tensor:
            output = compute(*inputs)
            save(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
            return gradients(ctx, gradient)

    launch: Callable[..., Tensor] = Launched.apply
    return launch


def mark_constants() -> None:
    """Tell torch.compile that what a device can do never changes.

    A decorator would import the compiler, which takes a second, into every command.
    """
    for function in (is_old_gpu, has_flash_attention, has_fused_residual):
        torch.compiler.assume_constant_result(function)


def sum_dtype(tensor: Tensor) -> torch.dtype:
    """Return the precision of sums and statistics over a tensor: its own, but at least float32."""
    return torch.promote_types(tensor.dtype, torch.float32)


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


_has_bf16 = functools.cache(has_bf16)
