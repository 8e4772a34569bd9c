"""The optimizer (section 5.3 of the paper)."""

from collections.abc import Callable
from typing import Any

import torch

from nmt.compute import distributed
from nmt.config.choices import find
from nmt.config.schema import TrainingConfig
from nmt.model.interface import TranslationModel
from nmt.training.freeze import trainable


def build_optimizer(model: TranslationModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name; the trainer sets the learning rate before each step."""
    build: Callable[[TranslationModel, TrainingConfig], torch.optim.Optimizer] = find(
        "training.optimizer", config.optimizer
    )
    return build(model, config)


def adam(model: TranslationModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Adam as in the paper; weight decay, if set, is decoupled (AdamW) and not applied to biases and gains.

    Several processes divide its averages between them if `training.shard_optimizer` asks for it.
    """
    matrices = [parameter for parameter in trainable(model) if parameter.dim() > 1]
    vectors = [parameter for parameter in trainable(model) if parameter.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    settings: dict[str, Any] = {
        "lr": 0.0,
        "betas": (config.adam_beta1, config.adam_beta2),
        "eps": config.adam_eps,
        "fused": True,
    }
    if config.shard_optimizer and distributed.world_size() > 1:
        return distributed.sharded_optimizer(torch.optim.AdamW, groups, **settings)
    return torch.optim.AdamW(groups, **settings)
