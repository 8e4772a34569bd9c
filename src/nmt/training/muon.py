"""Muon for the matrices of the layers and Adam for all other parameters, as one optimizer."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nmt.config.schema import TrainingConfig
from nmt.model.interface import TranslationModel
from nmt.model.linear import Linear
from nmt.training.freeze import trainable
from nmt.training.optimizer import adam_of


def muon(model: TranslationModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Muon (Jordan et al., 2024) for the matrices of the layers, and Adam for word vectors, norms and biases.

    Muon's updates are scaled to the size of Adam's (Liu et al., 2025), so one learning rate serves both.
    """
    layers = [module.weight for module in model.modules() if isinstance(module, Linear)]
    matrices = [weight for weight in layers if weight.requires_grad]
    chosen = set(map(id, matrices))
    others = [parameter for parameter in trainable(model) if id(parameter) not in chosen]
    return MuonAndAdam(
        torch.optim.Muon(
            [{"params": matrices}],
            lr=0.0,
            weight_decay=config.weight_decay,
            momentum=config.muon_momentum,
            adjust_lr_fn="match_rms_adamw",
        ),
        adam_of(others, config),
    )


class MuonAndAdam(torch.optim.Optimizer):
    """Two optimizers with one list of groups and one state, so that they are saved and restored like one."""

    found_inf: Tensor | None = None
    """Not 0 if the next step is to change nothing; the fused Adam has the same attribute."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._parts = parts
        self._share_state()

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the parameters; this waits for the device, because Muon cannot skip a step there as Adam does."""
        assert closure is None
        if self.found_inf is None or not self.found_inf:
            for part in self._parts:
                part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state_dict)
        self._share_state()

    def _share_state(self) -> None:
        """Let the parts use the groups and the state of the whole, which are replaced when a state is loaded."""
        first = 0
        for part in self._parts:
            part.param_groups = self.param_groups[first : first + len(part.param_groups)]
            part.state = self.state
            first += len(part.param_groups)
