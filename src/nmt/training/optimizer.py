"""The optimizer (section 5.3 of the paper)."""

from collections.abc import Callable, Mapping

import torch

from nmt.config.schema import TrainingConfig
from nmt.model.interface import TranslationModel
from nmt.training.freeze import trainable


def build_optimizer(model: TranslationModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name; the trainer sets the learning rate before each step."""
    return OPTIMIZERS[config.optimizer](model, config)


def adam(model: TranslationModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Adam as in the paper; weight decay, if set, is decoupled (AdamW) and not applied to biases and gains."""
    matrices = [parameter for parameter in trainable(model) if parameter.dim() > 1]
    vectors = [parameter for parameter in trainable(model) if parameter.dim() <= 1]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_eps,
        fused=True,
    )


OPTIMIZERS: Mapping[str, Callable[[TranslationModel, TrainingConfig], torch.optim.Optimizer]] = {"adam": adam}
"""The choices of training.optimizer."""
