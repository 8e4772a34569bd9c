"""What the operations of this package share: whether they use Triton kernels, and the precision of their sums."""

import functools
import importlib.util
import os

import torch
from torch import Tensor

from nmt.compute.machine import BF16_CAPABILITY


def uses_triton(tensor: Tensor) -> bool:
    """Return whether Triton's kernels compute on this tensor: on a GPU, or anywhere with Triton's interpreter.

    GPUs without bf16 use plain PyTorch: the kernels have not been compiled for them.
    """
    if tensor.dtype == torch.float64 or not has_triton():
        return False
    if tensor.is_cuda:
        return _capability(tensor.device) >= BF16_CAPABILITY
    return os.environ.get("TRITON_INTERPRET") == "1"


def sum_dtype(tensor: Tensor) -> torch.dtype:
    """Return the precision of sums and statistics over a tensor: its own, but at least float32."""
    return torch.promote_types(tensor.dtype, torch.float32)


@functools.cache
def has_triton() -> bool:
    """Return whether Triton is installed; it comes with the builds of PyTorch for GPUs."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)
