"""Muon for the matrices of the layers and Adam for all other parameters, as one optimizer."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.workers import run_all_in_threads
from nmt.config.training import TrainingConfig
from nmt.model.interface import TranslationModel
from nmt.model.linear import Linear
from nmt.model.parameters import trainable
from nmt.training.optimizer import adam_of
from nmt.training.orthogonal import orthogonal

MOMENTUM = 0.95
"""The decay rate of the mean gradient."""
ADAM_SIZE = 0.2
"""The root mean square of Adam's updates, divided by the learning rate."""
MAX_NUMBERS = 1 << 24
"""The most numbers in the matrices that a process makes orthogonal together, which bounds the memory for them."""
NUMBERS_PER_CORE = 1 << 16
"""The most numbers in several matrices that a core makes orthogonal together: they and their products fit its cache."""


def muon(model: TranslationModel, config: TrainingConfig, precision: torch.dtype) -> torch.optim.Optimizer:
    """Return Muon (Jordan et al., 2024) for the matrices of the layers, and Adam for word vectors, norms and biases."""
    layers = [module.weight for module in model.modules() if isinstance(module, Linear)]
    matrices = [weight for weight in layers if weight.requires_grad]
    chosen = set(map(id, matrices))
    others = [parameter for parameter in trainable(model) if id(parameter) not in chosen]
    if precision == torch.float16:  # its range is too small for products of small singular values
        precision = torch.float32
    return MuonAndAdam(Muon(matrices, config, precision), adam_of(others, config))


class Muon(torch.optim.Optimizer):
    """Steps of the same length in all directions of a matrix: the running mean of its gradients, made orthogonal.

    The steps are scaled to the size of Adam's (Liu et al., 2025) and by `training.muon_rate`. Unlike PyTorch's Muon,
    this one multiplies in the precision of the run and in fewer iterations: in float32 on a CPU each thread a few
    matrices of a shape, elsewhere all of a shape together. Several processes divide the matrices of each shape.
    """

    found_inf: Tensor | None = None
    """Not 0 if the next step is to change nothing, so that nobody waits for the device."""

    def __init__(self, matrices: list[Tensor], config: TrainingConfig, precision: torch.dtype) -> None:
        super().__init__([{"params": matrices}], {"lr": 0.0, "weight_decay": config.weight_decay})
        self._precision, self._rate = precision, config.muon_rate

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the matrices that have a gradient."""
        assert closure is None
        for group in self.param_groups:
            update = partial(self._update, group["lr"] * self._rate, group["weight_decay"])
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            is_on_cpu = all(matrix.device.type == "cpu" for matrix in matrices)
            if self._precision == torch.float32 and is_on_cpu and distributed.world_size() == 1:
                run_all_in_threads(update, list(_of_one_shape(matrices, NUMBERS_PER_CORE)))
            else:
                for alike in _of_one_shape(matrices, MAX_NUMBERS):
                    update(alike)

    @torch.no_grad()  # a thread has its own mode
    def _update(self, rate: float, decay: float, matrices: list[Tensor]) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        means = [self._running_mean(matrix) for matrix in matrices]
        is_taken = None if self.found_inf is None else self.found_inf == 0
        if is_taken is not None:  # a mean that moves towards itself stays
            gradients = [each.where(is_taken, mean) for mean, each in zip(means, gradients, strict=True)]
        torch._foreach_lerp_(means, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, means, MOMENTUM)  # Nesterov's step
        directions = distributed.compute_in_parts(self._directions, ahead)
        if is_taken is not None:
            directions = directions * is_taken
        if decay:
            kept = 1 - rate * decay
            torch._foreach_mul_(
                matrices, kept if is_taken is None else matrices[0].new_full((), kept).where(is_taken, 1)
            )
        size = ADAM_SIZE * max(matrices[0].shape) ** 0.5
        torch._foreach_add_(matrices, directions.unbind(), alpha=-rate * size)

    def _directions(self, matrices: Sequence[Tensor]) -> Tensor:
        stacked = torch.stack(list(matrices)) if len(matrices) > 1 else matrices[0][None]
        return orthogonal(stacked, self._precision)

    def _running_mean(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        mean: Tensor = state["momentum_buffer"]
        return mean


def _of_one_shape(matrices: list[Tensor], numbers: int) -> Iterator[list[Tensor]]:
    """Yield lists of matrices of the same shape; a process's part of each has at most this many numbers, or one matrix.

    The lists do not depend on the number of threads, so neither does what is computed.
    """
    by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for matrix in matrices:
        by_shape[matrix.shape].append(matrix)
    for shape, alike in by_shape.items():
        most = max(1, numbers // shape.numel()) * distributed.world_size()
        yield from (alike[first : first + most] for first in range(0, len(alike), most))


class MuonAndAdam(torch.optim.Optimizer):
    """Two optimizers with one list of groups and one state, so that they are saved and restored like one."""

    found_inf: Tensor | None = None
    """Not 0 if the next step is to change nothing; the fused Adam has the same attribute."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._parts = parts
        self._share_state()

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the parameters, or nothing: a GPU decides that itself, so that nobody waits for it."""
        assert closure is None
        is_on_gpu = self.found_inf is not None and self.found_inf.is_cuda
        if not is_on_gpu and self.found_inf is not None and self.found_inf:
            return
        for part in self._parts:
            if is_on_gpu:
                part.found_inf = self.found_inf  # type: ignore[attr-defined] # the fused Adam reads it, too
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
