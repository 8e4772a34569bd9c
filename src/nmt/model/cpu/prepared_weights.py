"""Copy a model for decoding on a CPU, with its weights in the layout of the fastest matrix products."""

from typing import cast

import torch
from torch import nn

from nmt.model.base import BaseModel
from nmt.model.cpu.fused_layers import fuse
from nmt.model.cpu.prepared_layers import (
    PackedLinear,
    PreparedLinear,
    PreparedNorm,
    PreparedWordVectors,
    multiplies_in_c,
    prepare_linear,
)
from nmt.model.interface import TranslationModel
from nmt.model.word_vectors import WordVectors
from nmt.model.working_weights import copy_in_precision


def prepare_for_cpu(model: TranslationModel, precision: torch.dtype, *, int8: bool = False) -> TranslationModel:
    """Return a copy for use on a CPU, all of it in one precision; later changes of the model do not affect it.

    With `int8`, the operations in C round the weights of matrix products and the rows that they multiply.
    """
    if any(isinstance(module, PackedLinear | PreparedLinear) for module in model.modules()):
        return model
    copied = cast(nn.Module, copy_in_precision(model, precision))
    in_c = multiplies_in_c(model.projection.to(precision))
    if in_c or _has_fast_products(precision):
        for name, module in list(copied.named_modules()):
            prepared = _prepare(module, int8=int8)
            if prepared is not None:
                copied.set_submodule(name, prepared)
    if in_c and isinstance(copied, BaseModel):
        fuse(copied)
    return cast(TranslationModel, copied)


def _prepare(module: nn.Module, *, int8: bool) -> nn.Module | None:
    """Return the replacement of a module, or None to keep the module."""
    match module:
        case nn.Linear():
            return prepare_linear(module.weight, module.bias, int8=int8)
        case nn.LayerNorm():
            return PreparedNorm(module)
        case WordVectors():
            return PreparedWordVectors(module, int8=int8)
    return None


def _has_fast_products(precision: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    if precision == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return precision == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
