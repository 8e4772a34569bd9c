"""Layers of a model that decodes on a CPU, with their weights in the layout of the matrix products."""

import torch
from torch import Tensor, nn

from nmt.model.kernels.c.library import computes_in_c
from nmt.model.kernels.c.products import PackedMatrix
from nmt.model.word_vectors import WordVectors


def prepare_linear(weight: Tensor, bias: Tensor | None, numbers: torch.dtype) -> nn.Module:
    """Return the fastest x W^T + b: for float32 in C, which multiplies in the type `numbers`, else oneDNN's."""
    return PackedLinear(weight, bias, numbers) if multiplies_in_c(weight) else PreparedLinear(weight, bias)


def multiplies_in_c(weight: Tensor) -> bool:
    """Return whether products with this matrix are computed by the operation in C."""
    return weight.dtype == torch.float32 and computes_in_c(weight)


class PackedLinear(nn.Module):
    """x W^T + b by the operation in C, which takes less than half of oneDNN's time if x has few rows."""

    def __init__(self, weight: Tensor, bias: Tensor | None, numbers: torch.dtype) -> None:
        super().__init__()
        self.matrix = PackedMatrix(weight, bias, numbers)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_in) to (..., d_out)."""
        return self.matrix.product(rows)

    __call__ = forward  # see PreparedLinear


class PreparedLinear(nn.Module):
    """x W^T + b by oneDNN, with W in the layout that oneDNN reads when x has few rows.

    torch.compile uses the same operations when it freezes a model. Products of a beam's few rows with a vocabulary
    take less than half the time of torch's own.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        self.bias = None if bias is None else bias.detach()
        self.product = torch.ops.mkldnn._linear_pointwise.default  # not every build of torch has it

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_in) to (..., d_out)."""
        product: Tensor = self.product(rows, self.weight, self.bias, "none", [], "")
        return product

    __call__ = forward  # the overhead of nn.Module.__call__ is as long as a product of few rows


class PreparedNorm(nn.Module):
    """LayerNorm without the overhead of nn.Module.__call__."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps
        self.arguments = (norm.normalized_shape, self.weight, self.bias, self.eps)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model)."""
        return torch.layer_norm(rows, *self.arguments)

    __call__ = forward


class PreparedWordVectors(nn.Module):
    """Word vectors with a prepared projection."""

    def __init__(self, vectors: WordVectors, numbers: torch.dtype) -> None:
        super().__init__()
        self.vectors = vectors
        self.logits = prepare_linear(vectors.matrix("projection"), vectors.bias, numbers)

    def forward(self, side: str, tokens: Tensor) -> Tensor:
        """See `WordVectors.forward`."""
        return self.vectors.forward(side, tokens)

    def matrix(self, use: str) -> Tensor:
        """See `WordVectors.matrix`."""
        return self.vectors.matrix(use)

    working_matrix = matrix
