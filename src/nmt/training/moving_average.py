"""The moving average of the weights (training.ema)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from nmt.training.replicas import Replicas


class MovingAverage:
    """The moving average of the weights that training changes."""

    def __init__(self, replicas: Replicas, decay: float) -> None:
        """Begin with the current weights."""
        self._replicas, self._decay = replicas, decay
        self.averages = {name: each.detach().clone() for name, each in replicas.trained.items()}

    @torch.no_grad()
    def follow(self, step: int, finite: Tensor) -> None:
        """Move towards the weights after a step, unless it changed nothing because its gradient was not `finite`.

        The decay of the first steps is lower, so that the average forgets the initial weights. The device decides
        whether to move, so nothing waits for it.
        """
        decay = min(self._decay, (1 + step) / (10 + step))
        averages = list(self.averages.values())
        differences = torch._foreach_sub(list(self._replicas.trained.values()), averages)
        torch._foreach_mul_(differences, (1 - decay) * finite)
        torch._foreach_add_(averages, differences)

    @contextmanager
    def in_the_model(self) -> Iterator[None]:
        """Let the model have the averages instead of its weights in this block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def take(self) -> None:
        """Take the weights of the model, which are those of a checkpoint, as the averages."""
        torch._foreach_copy_(list(self.averages.values()), list(self._replicas.trained.values()))

    @torch.no_grad()
    def _exchange(self) -> None:
        # copied, because others hold these very tensors: the optimizer, its reductions and CUDA graphs
        trained: list[Tensor] = [*self._replicas.trained.values()]
        averages = list(self.averages.values())
        weights = [each.clone() for each in trained]
        torch._foreach_copy_(trained, averages)
        torch._foreach_copy_(averages, weights)
        self._replicas.working_weights.outdate()
