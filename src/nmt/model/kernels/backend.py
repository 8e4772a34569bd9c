"""What the operations of this package share: whether they use Triton kernels, and the precision of their sums."""

import functools
import importlib.util
import os

import torch
from torch import Tensor

from nmt.compute.machine import HALF_PRECISIONS, has_bf16, is_amd


def uses_triton(tensor: Tensor) -> bool:
    """Return whether Triton's kernels compute on this tensor: on a GPU, or anywhere with Triton's interpreter.

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


def has_flash_attention(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether a device has flash attention in this precision; one of NVIDIA's GPUs that computes in bf16 does.

    Some releases for AMD's GPUs do not support windows in `varlen_attn`, which make it causal.
    """
    if device.type != "cuda" or precision not in HALF_PRECISIONS or is_amd():
        return False
    return precision == torch.bfloat16 or not is_old_gpu(device)


def mark_constants() -> None:
    """Tell torch.compile that what a device can do never changes.

    A decorator would import the compiler, which takes a second, into every command.
    """
    for function in (is_old_gpu, has_flash_attention):
        torch.compiler.assume_constant_result(function)


def sum_dtype(tensor: Tensor) -> torch.dtype:
    """Return the precision of sums and statistics over a tensor: its own, but at least float32."""
    return torch.promote_types(tensor.dtype, torch.float32)


@functools.cache
def has_triton() -> bool:
    """Return whether Triton is installed; it comes with the builds of PyTorch for GPUs."""
    return importlib.util.find_spec("triton") is not None


_has_bf16 = functools.cache(has_bf16)
