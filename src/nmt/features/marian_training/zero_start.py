"""Keep the first input of the decoder at zero."""

import torch
from torch import Tensor

from nmt.config.schema import Config
from nmt.features.marian_training.settings import MarianTraining
from nmt.model.interface import TranslationModel
from nmt.text.special import BOS
from nmt.training.hook import TrainingHook
from nmt.training.replicas import Replicas

EMBEDDINGS = ("vectors.shared", "vectors.target")
"""The parameters, one of which every model has, whose row BOS is the first input of the decoder."""


def zero_start(config: Config) -> "ZeroStart | None":
    """Return what keeps the first input at zero; None if the settings do not ask for it."""
    return ZeroStart() if config.of(MarianTraining).zero_start else None


class ZeroStart(TrainingHook):
    """Sets the word vector with which translations begin to zero, before training and after each step."""

    def __init__(self) -> None:
        """See `training.zero_start`."""
        self._replicas: Replicas

    def prepare(self, model: TranslationModel) -> None:
        """See `TrainingHook.prepare`."""
        _set_to_zero(model)

    def begin(self, replicas: Replicas) -> None:
        """See `TrainingHook.begin`."""
        self._replicas = replicas

    def after_step(self, step: int, finite: Tensor) -> None:
        """See `TrainingHook.after_step`."""
        _set_to_zero(self._replicas.model)
        self._replicas.outdate()


@torch.no_grad()
def _set_to_zero(model: TranslationModel) -> None:
    for name, parameter in model.named_parameters():
        if name in EMBEDDINGS:
            parameter[BOS].zero_()
