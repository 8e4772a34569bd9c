"""A model that several processes train: PyTorch's averaging of gradients, and its division of an optimizer's state.

In a single process, the model and the optimizer stay as they are.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.compute import distributed


def parallel(model: nn.Module, *, rounded: bool) -> nn.Module:
    """Return the model wrapped to average its gradients over all processes; in bf16 if `rounded`."""
    if distributed.world_size() == 1:
        return model
    with warnings.catch_warnings():  # PyTorch 2.13 renames broadcast_buffers, but 2.11 knows no other name
        warnings.simplefilter("ignore", FutureWarning)
        shared = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    if rounded:  # PyTorch's own bf16 hook does not support CPUs
        shared.register_comm_hook(None, _average_in_bf16)
    return shared


def with_same_weights(model: nn.Module) -> nn.Module:
    """Return the model with the weights of the first process in all of them; nothing averages its gradients."""
    if distributed.world_size() > 1:
        for weights in model.state_dict().values():
            dist.broadcast(weights, src=0)
    return model


def _average_in_bf16(
    _: None,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    gradients: Tensor = bucket.buffer()
    summed = dist.all_reduce(gradients.to(torch.bfloat16).div_(distributed.world_size()), async_op=True)
    averaged: torch.futures.Future[Tensor] = summed.get_future().then(lambda done: gradients.copy_(done.value()[0]))
    return averaged


@contextmanager
def last_only(model: nn.Module, last: bool) -> Iterator[None]:
    """Average gradients over the processes only in the `last` backward pass of a step."""
    if last or not isinstance(model, DistributedDataParallel):
        yield
    else:
        with model.no_sync():
            yield


def sharded_optimizer(
    kind: type[torch.optim.Optimizer], groups: Sequence[dict[str, Any]], **settings: Any
) -> torch.optim.Optimizer:
    """Return an optimizer whose state is divided between the processes; each updates its share of the weights."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: PLC0415 - as slow to import as torch

    return ZeroRedundancyOptimizer(groups, optimizer_class=kind, parameters_as_bucket_view=True, **settings)


def local_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the part of a sharded optimizer that belongs to this process; another optimizer is returned as it is."""
    local: torch.optim.Optimizer = getattr(optimizer, "optim", optimizer)
    return local


def whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the state of an optimizer, as if it were not sharded, in the main process. All processes must call this.

    The other processes of a sharded optimizer get an empty dictionary.
    """
    if local_optimizer(optimizer) is not optimizer:
        optimizer.consolidate_state_dict(to=0)  # type: ignore[attr-defined]
        if not distributed.is_main():
            return {}
    return optimizer.state_dict()


def load_whole_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Load the state of an optimizer; a sharded one keeps its share."""
    optimizer.load_state_dict({**state, "state": dict(state["state"])})  # a sharded one removes the others' shares
    local = local_optimizer(optimizer)
    if local is optimizer:
        return
    optimizer.state.clear()  # a second copy, which nothing reads
    for parameter, values in local.state.items():  # the fused optimizer needs all of its state on the device
        local.state[parameter] = {name: value.to(parameter.device) for name, value in values.items()}
