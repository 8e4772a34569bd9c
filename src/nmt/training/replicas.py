"""The model as processes train it together: each has a whole copy of it, unless `runtime.shard` divides it."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.training import TrainingConfig
from nmt.data.loader import assemble
from nmt.data.store import in_memory
from nmt.decoding.batches import MAX_TARGET_TOKENS
from nmt.errors import CommonError
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from nmt.training.optimizer import build_optimizer


class Replicas:
    """A whole model in each process, whose gradients are averaged over the processes.

    A subclass may divide the weights between the processes. Whatever changes weights between steps, such as the
    optimizer, sees only those in `trained`, which are ordinary tensors.
    """

    divides_weights: ClassVar[bool] = False
    """Whether each process keeps only a part of the weights, of their gradients and of the optimizer's state."""

    def __init__(
        self, objective: Objective, machine: Machine, config: TrainingConfig, *, averaged: bool = True
    ) -> None:
        """Move the model of an objective to its device, and prepare it for training.

        Unless `averaged`, backward passes do not average gradients, because `RecordedPasses` does so after them.
        """
        self.model, self.config, self.precision = objective.model, config, machine.precision
        self.model.to(machine.device)
        self.objective: nn.Module = parallel(objective) if averaged else _with_same_weights(objective)
        """Computes losses."""
        self.working_weights = WorkingWeights(self.model, machine.precision)
        """The model in the precision of training."""
        with self.working_weights.active():
            self.model.build_position_tables(2 * MAX_TARGET_TOKENS)  # some models join both sides
            if isinstance(self.objective, DistributedDataParallel) and machine.device.type == "cpu":
                self._sort_buckets()
        self.trained: Mapping[str, nn.Parameter] = {
            name: each for name, each in self.model.named_parameters() if each.requires_grad
        }
        """The parameters that this process updates, by name: whole ones, or parts of them."""

    def _sort_buckets(self) -> None:
        """Let DDP sort its buckets of gradients, which it does after the first backward pass, without any text.

        Gloo adds up the parts of a bucket in different orders, so a resumed run needs sorted buckets in its first step.
        """
        nothing = np.zeros(0, np.int64)
        self.objective(assemble(in_memory((nothing, nothing), (nothing, nothing)), nothing)).smoothed.backward()
        self.model.zero_grad(set_to_none=True)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return a new optimizer of what this process updates."""
        return build_optimizer(self.model, self.config, self.precision)

    def last_only(self, *, last: bool) -> AbstractContextManager[None]:
        """Return a context around a forward pass whose gradients are averaged now only if it is the `last` of a step.

        The gradients of the others are averaged with it, or immediately if they would need too much memory.
        """
        if last or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    def gradients(self) -> list[Tensor]:
        """Return the gradients of what this process updates, after the last backward pass of a step."""
        return [each.grad for each in self.trained.values() if each.grad is not None]

    def norm(self, gradients: list[Tensor]) -> Tensor:
        """Return the norm of the whole gradient, given those of this process. All processes must call this."""
        norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        return norm

    def weights(self) -> dict[str, Tensor]:
        """Return the whole weights for a checkpoint. All processes must call this; only the main one must get them."""
        return self.model.state_dict()

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take whole weights by name; each process takes its part."""
        self.model.load_state_dict(weights)

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Return the whole state of an optimizer for a checkpoint. All processes must call this, see `weights`."""
        return optimizer.state_dict()

    def load_optimizer_state(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Give an optimizer what `optimizer_state` returned; each process takes its part."""
        optimizer.load_state_dict(dict(state))

    @contextmanager
    def evaluated(self) -> Iterator[WorkingWeights]:
        """Provide the whole model in this block, so that each process can run it on its own."""
        yield self.working_weights


def parallel(model: nn.Module) -> nn.Module:
    """Return the model wrapped to average its gradients over all processes."""
    if distributed.world_size() == 1:
        return model
    with warnings.catch_warnings():  # PyTorch 2.13 renames broadcast_buffers, but 2.11 knows no other name
        warnings.simplefilter("ignore", FutureWarning)
        return DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)


def _with_same_weights(model: nn.Module) -> nn.Module:
    """Return the model with the weights of the first process in all of them; nothing averages its gradients."""
    if distributed.world_size() > 1:
        for weights in model.state_dict().values():
            dist.broadcast(weights, src=0)
    return model


def check_same_weights(model: nn.Module, step: int) -> None:
    """Raise an error in all processes if one has other weights than the first, bit for bit."""
    hashes = [torch.hash_tensor(weight.detach()).view(torch.int64) for weight in model.parameters()]
    first, *others = distributed.gather_objects(torch.stack(hashes).tolist())
    for rank, theirs in enumerate(others, start=1):
        if theirs != first:
            raise CommonError(
                f"the weights of rank {rank} differ from those of rank 0 at step {step}: the memory or the device of "
                "its machine may be faulty. They were not saved: the same command resumes from the last checkpoint"
            )
