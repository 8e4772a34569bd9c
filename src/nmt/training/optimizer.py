"""The optimizer (section 5.3 of the paper)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmt.config.registry import load
from nmt.config.training import TrainingConfig
from nmt.model.interface import TranslationModel, trainable


def build_optimizer(model: TranslationModel, config: TrainingConfig, precision: torch.dtype) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name; the trainer sets the learning rate before each step.

    If the optimizer multiplies matrices, it does so in the given precision.
    """
    build: Callable[[TranslationModel, TrainingConfig, torch.dtype], torch.optim.Optimizer] = load(
        "training.optimizer", config.optimizer
    )
    return build(model, config, precision)


def adam(model: TranslationModel, config: TrainingConfig, _: torch.dtype) -> torch.optim.Optimizer:
    """Return Adam as in the paper."""
    return adam_of(trainable(model), config)


def adam_of(parameters: Sequence[nn.Parameter], config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Adam for some parameters."""
    betas = config.adam_beta1, config.adam_beta2
    return torch.optim.AdamW(adam_groups(parameters, config), lr=0.0, betas=betas, eps=config.adam_eps, fused=True)


def adam_groups(parameters: Sequence[nn.Parameter], config: TrainingConfig) -> list[dict[str, object]]:
    """Return matrices and vectors as groups. Weight decay is decoupled, and not applied to biases and gains."""
    return [
        {"params": [each for each in parameters if each.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [each for each in parameters if each.dim() <= 1], "weight_decay": 0.0},
    ]


def state_tensors(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the parameters as often as the optimizer's state has their shape: twice in Adam, once with momentum."""
    return [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        for _ in group.get("betas", ("momentum",))
    ]
