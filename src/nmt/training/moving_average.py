"""An exponential moving average of the weights, which is validated and saved in their place (training.ema)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from nmt.model.interface import TranslationModel
from nmt.model.working_weights import WorkingWeights


class MovingAverage:
    """The moving average of the weights that training changes."""

    def __init__(self, weights: WorkingWeights, decay: float) -> None:
        """Begin with the current weights of a model that must stay on its device."""
        self._working_weights, self._decay = weights, decay
        self._model: TranslationModel = weights.model
        self._trained: dict[str, Tensor] = {
            name: each for name, each in self._model.named_parameters() if each.requires_grad
        }
        self._averages = {name: each.detach().clone() for name, each in self._trained.items()}

    @torch.no_grad()
    def update(self, step: int, finite: Tensor) -> None:
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
    def in_model(self) -> Iterator[None]:
        """Let the model have the averages instead of its weights in this block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def to_save(self) -> dict[str, Tensor]:
        """Return the model's state with the averages instead of its weights."""
        return {**self._model.state_dict(), **self._averages}

    @torch.no_grad()
    def take_weights(self) -> None:
        """Make the current weights of the model the averages."""
        torch._foreach_copy_(list(self._averages.values()), list(self._trained.values()))

    @torch.no_grad()
    def _exchange(self) -> None:
        # copied, because others hold these very tensors: the optimizer, its reductions and CUDA graphs
        trained, averages = list(self._trained.values()), list(self._averages.values())
        weights = [each.clone() for each in trained]
        torch._foreach_copy_(trained, averages)
        torch._foreach_copy_(averages, weights)
        self._working_weights.outdate()
