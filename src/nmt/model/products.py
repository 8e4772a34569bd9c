"""Matrix products: by PyTorch's choice of library, or by oneDNN if that is faster."""

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.compute.cores import cpu_is_by_amd

MIN_SIZE = 64
"""The fewest rows and columns from which on a product takes longer than oneDNN's overhead."""


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return rows @ weight.T + bias, without a gradient if `prefers_onednn`."""
    if prefers_onednn(rows) and min(len(rows), len(weight)) >= MIN_SIZE:
        return _by_onednn(rows, weight, bias)
    return F.linear(rows, weight, bias)


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Return left @ right, without a gradient if `prefers_onednn`."""
    is_large = min(len(left), right.shape[1]) >= MIN_SIZE
    is_whole = right.is_contiguous() or right.t().is_contiguous()  # oneDNN takes a hundred times as long for a part
    if is_large and is_whole and prefers_onednn(left):
        return _by_onednn(left, right.t(), None)
    return left @ right


def multiply_into(result: Tensor, left: Tensor, right: Tensor) -> None:
    """Write left @ right to a matrix."""
    if prefers_onednn(left):
        result.copy_(multiply(left, right))
    else:
        torch.mm(left, right, out=result)


def exact_product(left: Tensor, right: Tensor, exact: torch.dtype) -> Tensor:
    """Return left @ right: on CUDA in the exact type, elsewhere in that of the factors."""
    if left.is_cuda and torch.version.hip is None and left.dtype != exact:
        return torch.mm(left, right, out_dtype=exact)
    return multiply(left, right)


def prefers_onednn(like: Tensor) -> bool:
    """Return whether products in the type of a matrix are oneDNN's.

    In float32, PyTorch calls MKL, which uses only AVX2 on AMD's processors, so on those with AVX-512 oneDNN is twice as
    fast. On those without, MKL is faster by a twentieth. In bf16, PyTorch itself calls oneDNN.
    """
    is_plain = like.device.type == "cpu" and like.dtype == torch.float32 and like.dim() == 2
    tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return is_plain and not (tracing or torch.compiler.is_compiling()) and _is_faster_here()


@functools.cache
def _is_faster_here() -> bool:
    has_avx512 = "AVX512" in torch.backends.cpu.get_cpu_capability()
    return cpu_is_by_amd() and has_avx512 and torch.backends.mkldnn.is_available()


def _by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, weight, bias, "none", [], "")
    return product
