"""The optimizer (section 5.3 of the paper)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.compute.replication import sharded_optimizer
from nmt.config.registry import load
from nmt.config.training import TrainingConfig
from nmt.model.interface import TranslationModel
from nmt.model.parameters import trainable


def build_optimizer(model: TranslationModel, config: TrainingConfig, precision: torch.dtype) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name; the trainer sets the learning rate before each step.

    If the optimizer multiplies matrices, it does so in the given precision.
    """
    build: Callable[[TranslationModel, TrainingConfig, torch.dtype], torch.optim.Optimizer] = load(
        "training.optimizer", config.optimizer
    )
    return build(model, config, precision)


def adam(model: TranslationModel, config: TrainingConfig, _: torch.dtype) -> torch.optim.Optimizer:
    """Return Adam as in the paper.

    With `training.shard_optimizer`, processes divide its running averages among them.
    """
    if config.shard_optimizer and distributed.world_size() > 1:
        groups = _groups(trainable(model), config)
        return sharded_optimizer(torch.optim.AdamW, groups, **_settings(config))
    return adam_of(trainable(model), config)


def adam_of(parameters: Sequence[nn.Parameter], config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Adam for some parameters."""
    return torch.optim.AdamW(_groups(parameters, config), **_settings(config))


def state_tensors(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the parameters as often as the optimizer's state has their shape: twice in Adam, once with momentum."""
    return [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        for _ in group.get("betas", ("momentum",))
    ]


def _groups(parameters: Sequence[nn.Parameter], config: TrainingConfig) -> list[dict[str, Any]]:
    """Divide parameters into those with and without weight decay, which is not applied to biases and gains."""
    matrices = [parameter for parameter in parameters if parameter.dim() > 1]
    vectors = [parameter for parameter in parameters if parameter.dim() <= 1]
    return [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def _settings(config: TrainingConfig) -> dict[str, Any]:
    """Return the settings of AdamW, whose weight decay is decoupled."""
    betas = config.adam_beta1, config.adam_beta2
    return {"lr": 0.0, "betas": betas, "eps": config.adam_eps, "fused": True}
