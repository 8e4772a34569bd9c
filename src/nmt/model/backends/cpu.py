"""The operations of the model on a CPU, in C where PyTorch makes several passes over memory, or rounds between them."""

from collections.abc import Collection
from typing import cast

import torch
from torch import Tensor, nn

from nmt.compute.cores import cpu_is_by_amd
from nmt.model.attention import Attend, AttentionSpec
from nmt.model.backends.fast import Fast
from nmt.model.dropout import Dropout
from nmt.model.kernels.c import rows as in_c
from nmt.model.kernels.c.attention import AttendInC, rotate
from nmt.model.kernels.c.library import LANES, Draws
from nmt.model.modules import LayerNorm

MIN_SIZE = 64
"""The fewest rows and columns from which on a product takes longer than oneDNN's overhead."""


class Cpu(Fast):
    """Computes in C in some precisions; in others, and in widths that fill no vector register, as `Fast` does."""

    name = "cpu"

    def __init__(self, precisions: Collection[torch.dtype]) -> None:
        """Use the operations in C, which must have been compiled for these precisions."""
        self.precisions = precisions
        has_avx512 = "AVX512" in torch.backends.cpu.get_cpu_capability()
        self.onednn = cpu_is_by_amd() and has_avx512 and torch.backends.mkldnn.is_available()
        """Whether float32 products are oneDNN's: PyTorch calls MKL, which uses only AVX2 on AMD's processors, so that
        oneDNN is twice as fast on those with AVX-512. On those without, MKL is faster by a twentieth."""

    def attention(self, spec: AttentionSpec) -> Attend:
        """See `Eager.attention`."""
        return AttendInC(spec) if spec.plain and spec.precision in self.precisions else super().attention(spec)

    def dropout(self, stream: Tensor, dropout: Dropout) -> Tensor:
        """See `Eager.dropout`."""
        if not dropout.rate or not self._computes(stream):
            return super().dropout(stream, dropout)
        return in_c.drop(stream, Draws(stream, dropout.rate))

    def residual(self, stream: Tensor, branch: Tensor, dropout: Dropout) -> Tensor:
        """See `Eager.residual`."""
        if not dropout.rate or not self._computes(stream, branch):
            return super().residual(stream, branch, dropout)
        return in_c.add_dropped(stream, branch, Draws(branch, dropout.rate))

    def residual_norm(self, stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module) -> Tensor:
        """See `Eager.residual_norm`."""
        layer = type(norm) is LayerNorm and norm.weight.dtype == torch.float32  # a subclass may compute something else
        if layer and dropout.rate and self._computes(stream, branch):
            return in_c.add_norm(stream, branch, cast(LayerNorm, norm), Draws(branch, dropout.rate))
        return super().residual_norm(stream, branch, dropout, norm)

    def rotate(self, heads: Tensor, rotation: Tensor) -> Tensor:
        """See `Eager.rotate`."""
        if not self._computes(heads, rotation):
            return super().rotate(heads, rotation)
        return rotate(heads, rotation)

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor, *, rectify: bool) -> Tensor:
        """See `Fast.product`."""
        if not self.onednn or rows.dtype != torch.float32 or min(len(rows), len(weight)) < MIN_SIZE:
            return super().product(rows, weight, bias, rectify=rectify)
        product = _by_onednn(rows, weight, bias)
        return product.relu_() if rectify else product

    def multiply(self, left: Tensor, right: Tensor) -> Tensor:
        """See `Eager.multiply`."""
        is_large = min(len(left), right.shape[1]) >= MIN_SIZE
        is_whole = right.is_contiguous() or right.t().is_contiguous()  # oneDNN takes a hundred times as long for a part
        if self.onednn and left.dtype == torch.float32 and is_large and is_whole:
            return _by_onednn(left, right.t(), None)
        return left @ right

    def rectifier_gradient(self, gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
        """See `Fast.rectifier_gradient`."""
        if not self._computes(gradient):
            return super().rectifier_gradient(gradient, rectified)
        return in_c.rectifier_gradient(gradient, rectified)

    def sum_rows(self, rows: Tensor) -> Tensor:
        """See `Fast.sum_rows`."""
        if not self._computes(rows):
            return super().sum_rows(rows)
        return in_c.sum_rows(rows)

    def softmax_gradient_(self, logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `Eager.softmax_gradient_`."""
        if logits.dtype not in self.precisions or not logits.is_contiguous():
            return super().softmax_gradient_(logits, labels, smoothing)
        return in_c.softmax_gradient_(logits, labels, smoothing)

    def _computes(self, *streams: Tensor) -> bool:
        """Return whether the operations in C take these streams, which must fill vector registers."""
        dtypes = {each.dtype for each in streams}
        return len(dtypes) == 1 and dtypes <= set(self.precisions) and streams[0].shape[-1] % LANES == 0


def _by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, weight, bias, "none", [], "")
    return product
