"""Which implementation an operation of this package uses: a Triton kernel on a GPU, plain PyTorch elsewhere."""

import functools
import importlib.util
import os

import torch
from torch import Tensor


def uses_triton(tensor: Tensor) -> bool:
    """Return whether Triton's kernels compute on this tensor: on a GPU, or anywhere with Triton's interpreter."""
    if tensor.dtype == torch.float64 or not has_triton():
        return False
    return tensor.device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def has_triton() -> bool:
    """Return whether Triton is installed; it comes with the builds of PyTorch for GPUs."""
    return importlib.util.find_spec("triton") is not None
