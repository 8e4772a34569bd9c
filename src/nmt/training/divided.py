"""Weights that processes divide among them, by PyTorch's `fully_shard`."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from nmt.compute import distributed
from nmt.compute.machine import HALF_PRECISIONS, Machine
from nmt.config.training import TrainingConfig
from nmt.errors import CommonError
from nmt.model.interface import TranslationModel
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from nmt.training.optimizer import adam_of
from nmt.training.replicas import Replicas


class DividedWeights(Replicas):
    """A model of which each process keeps some rows of every weight, of its gradient and of Adam's averages.

    The processes gather a layer's weights before they compute it, forward and backward, and forget them afterwards.
    The optimizer, hooks and the norm of the gradient see the rows of this process as ordinary tensors.
    """

    divides_weights: ClassVar[bool] = True

    def __init__(self, objective: Objective, machine: Machine, config: TrainingConfig) -> None:
        """Divide the weights of an objective's model, layer by layer, so that no GPU has to hold all of them."""
        if distributed.world_size() == 1:
            raise CommonError(
                "runtime.shard=weights divides the weights between processes, but there is only one: start several "
                "with torchrun, or leave it out"
            )
        self.model, self.config, self.precision = objective.model, config, machine.precision
        self._whole = _without_weights(self.model, machine.device)
        self._no_weights = self._whole.state_dict()
        _divide(objective, machine)
        self.objective = objective
        self.working_weights = WorkingWeights(self.model, torch.float32)  # the layers gather copies in the precision
        self._divided = {name: cast(DTensor, each) for name, each in self.model.named_parameters()}
        self._rows: dict[str, nn.Parameter] = {
            name: nn.Parameter(cast(DTensor, each.detach()).to_local(), each.requires_grad)
            for name, each in self._divided.items()
        }
        self.trained = {name: each for name, each in self._rows.items() if each.requires_grad}

    def optimizer(self) -> torch.optim.Optimizer:
        """See `Replicas`; the settings refuse others than Adam."""
        return adam_of(list(self.trained.values()), self.config)

    def last_only(self, *, last: bool) -> AbstractContextManager[None]:
        """See `Replicas`: whole gradients would need too much memory, so each is averaged immediately."""
        return nullcontext()

    def gradients(self) -> list[Tensor]:
        """See `Replicas`."""
        for name, rows in self.trained.items():
            gradient = cast(DTensor | None, self._divided[name].grad)
            rows.grad = None if gradient is None else gradient.to_local()
        return super().gradients()

    def norm(self, gradients: list[Tensor]) -> Tensor:
        """See `Replicas`."""
        return distributed.sum_over_processes(super().norm(gradients).square()).sqrt()

    def whole(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return whole tensors, given this process's rows of them, by the names of parameters.

        All processes must call this, and only the main one gets them, with one at a time on its device.
        """
        gathered = {}
        for name, part in parts.items():
            tensor = self._gather(name, part)
            if distributed.is_main():
                gathered[name] = tensor.cpu()
        return gathered

    def weights(self) -> dict[str, Tensor]:
        """See `Replicas`."""
        return self.whole(self._rows)

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """See `Replicas`."""
        for name, rows in self._rows.items():
            rows.copy_(_share(weights[name]))

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """See `Replicas`."""
        saved = optimizer.state_dict()
        ids = {id(each): name for name, each in self._rows.items()}
        names = [ids[id(each)] for group in optimizer.param_groups for each in group["params"]]
        for index, values in saved["state"].items():
            whole = {key: self.whole({names[index]: each}) for key, each in values.items() if each.dim()}
            saved["state"][index] = {**values, **{key: each.get(names[index]) for key, each in whole.items()}}
        return saved if distributed.is_main() else {}

    def load_optimizer_state(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """See `Replicas`."""
        parts = {
            index: {key: _share(each).clone() if each.dim() else each for key, each in values.items()}
            for index, values in state["state"].items()
        }
        optimizer.load_state_dict({**state, "state": parts})

    @contextmanager
    def evaluated(self) -> Iterator[WorkingWeights]:
        """See `Replicas`: each process gathers all weights, because searches differ in their steps."""
        self._whole.load_state_dict({name: self._gather(name, each) for name, each in self._rows.items()}, assign=True)
        try:
            yield WorkingWeights(cast(TranslationModel, self._whole), self.precision)
        finally:
            self._whole.load_state_dict(self._no_weights, assign=True)

    def _gather(self, name: str, rows: Tensor) -> Tensor:
        """Return a whole tensor, given this process's rows of it, which is divided as the parameter of this name is."""
        like = self._divided[name]
        shape, stride = like.shape, like.stride()
        return DTensor.from_local(
            rows.detach(), like.device_mesh, like.placements, run_check=False, shape=shape, stride=stride
        ).full_tensor()


def _divide(objective: Objective, machine: Machine) -> None:
    """Divide the weights; those outside of layers stay gathered from the forward to the backward pass."""
    half = machine.precision if machine.precision in HALF_PRECISIONS else None
    policy = MixedPrecisionPolicy(
        param_dtype=half, reduce_dtype=torch.float32 if half else None, cast_forward_inputs=False
    )
    mesh = init_device_mesh(machine.device.type, (distributed.world_size(),))
    for module in objective.model.modules():
        if isinstance(module, nn.ModuleList):
            for layer in module:
                fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(objective, mesh=mesh, mp_policy=policy)


def _without_weights(model: TranslationModel, device: torch.device) -> nn.Module:
    """Return a copy of a model whose parameters have shapes but no values."""
    empty = {id(each): nn.Parameter(each.detach().to("meta"), requires_grad=False) for each in model.parameters()}
    copied = copy.deepcopy(cast(nn.Module, model), cast(Any, empty))
    for module in copied.modules():
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, buffer.to(device))
    return copied


def _share(whole: Tensor) -> Tensor:
    """Return the rows of a whole tensor that this process keeps: those of `torch.chunk`, of which there may be none."""
    size = -(-len(whole) // distributed.world_size())
    return whole[distributed.rank() * size : (distributed.rank() + 1) * size]
