"""The optimizer (section 5.3 of the paper)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nmt.compute import distributed
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
    """Return Adam as in the paper.

    With `training.shard_optimizer`, processes divide its running averages among them.
    """
    return adam_of(trainable(model), config, sharded=config.shard_optimizer and distributed.world_size() > 1)


def adam_of(
    parameters: Sequence[nn.Parameter], config: TrainingConfig, *, sharded: bool = False
) -> torch.optim.Optimizer:
    """Return Adam for some parameters. Weight decay is decoupled, and not applied to biases and gains."""
    matrices = [parameter for parameter in parameters if parameter.dim() > 1]
    vectors = [parameter for parameter in parameters if parameter.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    settings: dict[str, Any] = {
        "lr": 0.0,
        "betas": (config.adam_beta1, config.adam_beta2),
        "eps": config.adam_eps,
        "fused": True,
    }
    if sharded:  # each process updates its share of the weights
        from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: PLC0415 - as slow to import as torch

        return ZeroRedundancyOptimizer(groups, torch.optim.AdamW, parameters_as_bucket_view=True, **settings)
    return torch.optim.AdamW(groups, **settings)


def local_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the part of a sharded optimizer that belongs to this process; another optimizer is returned as it is."""
    local: torch.optim.Optimizer = getattr(optimizer, "optim", optimizer)
    return local


def state_tensors(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the parameters as often as the optimizer's state has their shape: twice in Adam, once with momentum."""
    return [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        for _ in group.get("betas", ("momentum",))
    ]
