"""Copies of a model's weights in the precision of its matrix products.

The parameters of a model are always float32: these are the weights that the optimizer changes and checkpoints store.
Matrix products in bf16 or fp16 need them in that precision. One copy of each is written in one go before a step, and
every product of the step uses it.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from nmt.compute.machine import HALF_PRECISIONS
from nmt.model.interface import TranslationModel
from nmt.model.modules import Linear
from nmt.model.word_vectors import WordVectors


class WorkingWeights:
    """The weights of a model in the precision of matrix products.

    Outside `active`, the model is an ordinary float32 model, so no other code can meet copies that are out of date.
    """

    def __init__(self, model: TranslationModel, precision: torch.dtype) -> None:
        """Prepare to run `model`, whose parameters must stay on their device; only a 16-bit precision needs copies."""
        self.model = model
        self._masters: list[Tensor] = []
        self._copies: list[Tensor] = []
        self._users: list[tuple[Linear | WordVectors, dict[str, Tensor]]] = []
        if precision not in HALF_PRECISIONS:
            return
        for module in model.modules():
            if isinstance(module, Linear | WordVectors):
                masters = dict(module.named_parameters(recurse=False))
                copies = {name: torch.empty_like(each, dtype=precision) for name, each in masters.items()}
                self._masters.extend(masters.values())
                self._copies.extend(copies.values())
                self._users.append((module, copies))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Run the model in the working precision in this block, in which its parameters must not change."""
        if self._copies:
            with torch.no_grad():
                torch._foreach_copy_(self._copies, self._masters)
        for module, copies in self._users:
            module.copies = copies
        try:
            yield
        finally:
            for module, _ in self._users:
                module.copies = None


def in_precision(model: TranslationModel, precision: torch.dtype) -> TranslationModel:
    """Return the model if all of it is in this precision, else a copy for decoding that changes do not affect."""
    if model.projection.dtype == precision:
        return model
    copied: TranslationModel = copy.deepcopy(model).requires_grad_(False).to(precision).eval()
    return copied
