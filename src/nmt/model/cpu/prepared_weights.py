"""A model made ready to be used and trained no more: its weights are laid out once for the products of a CPU."""

import copy

import torch
from torch import Tensor, nn

from nmt.model.interface import TranslationModel
from nmt.model.transformer import Transformer


class PreparedLinear(nn.Module):
    """x W^T + b by oneDNN, with W in the order in which its products of few rows read it.

    These are the operations that torch.compile puts in place of a linear layer when it freezes a model. Products of
    a beam's few rows with a vocabulary take a third of the time, or less, that torch's own need.
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

    __call__ = forward  # what a module's own call does besides takes as long as a product of few rows


class PreparedNorm(nn.Module):
    """LayerNorm, called at once."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.how = (norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model)."""
        return torch.layer_norm(rows, *self.how)

    __call__ = forward


def prepare_for_cpu(model: TranslationModel, precision: torch.dtype) -> TranslationModel:
    """Return a copy for use on a CPU, all of it in one precision; later changes of the model do not reach it."""
    assert isinstance(model, Transformer)
    if isinstance(model.projector, PreparedLinear):
        return model
    twin = copy.deepcopy(model).requires_grad_(False).to(precision).eval()
    if not _fast(precision):
        return twin
    twin.projector = PreparedLinear(twin.projection, None)
    for name, module in list(twin.named_modules()):
        if isinstance(module, nn.Linear):
            twin.set_submodule(name, PreparedLinear(module.weight, module.bias))
        elif isinstance(module, nn.LayerNorm):
            twin.set_submodule(name, PreparedNorm(module))
    return twin


def _fast(precision: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return precision == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
