"""The moving average of the weights (training.ema)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from nmt.training.hook import TrainingHook
from nmt.training.replicas import Replicas


class MovingAverage(TrainingHook):
    """The moving average of the weights that training changes."""

    def __init__(self, decay: float) -> None:
        """See `training.ema`."""
        self._decay = decay
        self._replicas: Replicas
        self._trained: dict[str, Tensor] = {}
        self._averages: dict[str, Tensor] = {}

    def begin(self, replicas: Replicas) -> None:
        """Begin with the current weights."""
        self._replicas, self._trained = replicas, dict(replicas.trained)
        self._averages = {name: each.detach().clone() for name, each in self._trained.items()}

    @torch.no_grad()
    def after_step(self, step: int, finite: Tensor) -> None:
        """Move towards the weights after a step, unless it changed nothing because its gradient was not `finite`.

        The decay of the first steps is lower, so that the average forgets the initial weights. The device decides
        whether to move, so nothing waits for it.
        """
        decay = min(self._decay, (1 + step) / (10 + step))
        averages = list(self._averages.values())
        differences = torch._foreach_sub(list(self._trained.values()), averages)
        torch._foreach_mul_(differences, (1 - decay) * finite)
        torch._foreach_add_(averages, differences)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let the model have the averages instead of its weights in this block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def weights(self) -> Mapping[str, Tensor]:
        """Return the averages."""
        return self._replicas.whole(self._averages)

    @property
    def state_bytes(self) -> int:
        """See `TrainingHook.state_bytes`."""
        return sum(each.nbytes for each in self._averages.values())

    def to_save(self) -> Mapping[str, Any]:
        """Return the weights that training continues with, as the checkpoint has their averages."""
        return {"weights": self._replicas.weights()}

    @torch.no_grad()
    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take the weights of the checkpoint, which the model has, as the averages."""
        torch._foreach_copy_(list(self._averages.values()), list(self._trained.values()))
        self._replicas.load(saved["weights"])

    @torch.no_grad()
    def _exchange(self) -> None:
        # copied, because others hold these very tensors: the optimizer, its reductions and CUDA graphs
        trained, averages = list(self._trained.values()), list(self._averages.values())
        weights = [each.clone() for each in trained]
        torch._foreach_copy_(trained, averages)
        torch._foreach_copy_(averages, weights)
        self._replicas.outdate()
