"""Copy a model for decoding on a CPU, with its weights in the layout of the fastest matrix products."""

from typing import cast

import torch
from torch import nn

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

IN_C = (torch.float32, torch.bfloat16)
"""The precisions in which the operations in C translate."""


def prepare_for_cpu(model: TranslationModel, precision: torch.dtype, *, int8: bool = False) -> TranslationModel:
    """Return a copy for use on a CPU in a precision; later changes of the model do not affect it.

    In C, the weights of matrix products, and the rows that they multiply, are rounded to bf16, or with `int8` to
    integers, and all else is in float32. Without the operations in C, all of the copy is in the precision.
    """
    if any(isinstance(module, PackedLinear | PreparedLinear) for module in model.modules()):
        return model
    in_c = precision in IN_C and multiplies_in_c(model.projection.float())
    copied = cast(nn.Module, copy_in_precision(model, torch.float32 if in_c else precision))
    if in_c or _has_fast_products(precision):
        for name, module in list(copied.named_modules()):
            prepared = _prepare(module, torch.int8 if int8 else precision)
            if prepared is not None:
                copied.set_submodule(name, prepared)
    if in_c and isinstance(copied, TranslationModel):
        fuse(copied)
    return cast(TranslationModel, copied)


def _prepare(module: nn.Module, numbers: torch.dtype) -> nn.Module | None:
    """Return the replacement of a module, or None to keep the module."""
    match module:
        case nn.Linear():
            return prepare_linear(module.weight, module.bias, numbers)
        case nn.LayerNorm():
            return PreparedNorm(module)
        case WordVectors():
            return PreparedWordVectors(module, numbers)
    return None


def _has_fast_products(precision: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    if precision == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return precision == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
