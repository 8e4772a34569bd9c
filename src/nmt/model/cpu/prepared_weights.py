"""Copy a model for decoding on a CPU, with its weights in the layout of oneDNN's matrix products."""

from typing import cast

import torch
from torch import Tensor, nn

from nmt.model.interface import TranslationModel
from nmt.model.word_vectors import WordVectors
from nmt.model.working_weights import copy_in_precision


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
        self.arguments = (norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model)."""
        return torch.layer_norm(rows, *self.arguments)

    __call__ = forward


class PreparedWordVectors(nn.Module):
    """Word vectors with a prepared projection."""

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__()
        self.vectors = vectors
        self.logits = PreparedLinear(vectors.matrix("projection"), vectors.bias)

    def forward(self, side: str, tokens: Tensor) -> Tensor:
        """See `WordVectors.forward`."""
        return self.vectors.forward(side, tokens)

    def matrix(self, use: str) -> Tensor:
        """See `WordVectors.matrix`."""
        return self.vectors.matrix(use)

    working_matrix = matrix


def prepare_for_cpu(model: TranslationModel, precision: torch.dtype) -> TranslationModel:
    """Return a copy for use on a CPU, all of it in one precision; later changes of the model do not affect it."""
    if any(isinstance(module, PreparedLinear) for module in model.modules()):
        return model
    copied = cast(nn.Module, copy_in_precision(model, precision))
    if _has_fast_products(precision):
        for name, module in list(copied.named_modules()):
            prepared = _prepare(module)
            if prepared is not None:
                copied.set_submodule(name, prepared)
    return cast(TranslationModel, copied)


def _prepare(module: nn.Module) -> nn.Module | None:
    """Return the replacement of a module, or None to keep the module."""
    match module:
        case nn.Linear():
            return PreparedLinear(module.weight, module.bias)
        case nn.LayerNorm():
            return PreparedNorm(module)
        case WordVectors():
            return PreparedWordVectors(module)
    return None


def _has_fast_products(precision: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    if precision == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return precision == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
