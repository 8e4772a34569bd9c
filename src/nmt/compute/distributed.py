"""Processes that train one model together. This is the only module that imports torch.distributed.

Every function also works in a single process, where it costs nothing.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import RuntimeConfig
from nmt.errors import CommonError, UserError

T = TypeVar("T")
Record = TypeVar("Record", bound=tuple[int, ...])
"""A NamedTuple of integers, booleans or IntEnums."""

POLL_SECONDS = 0.05
"""Seconds between rank 0's checks for processes that have not answered yet."""


def rank() -> int:
    """Return the number of this process, counted from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main() -> bool:
    """Return whether this is the process that writes files and reports progress."""
    return rank() == 0


@contextmanager
def session(config: RuntimeConfig) -> Iterator[Machine]:
    """Choose this process's device, and join the other processes if torchrun started several."""
    local_rank, local_processes = os.environ.get("LOCAL_RANK", "0"), os.environ.get("LOCAL_WORLD_SIZE", "1")
    machine = prepare_machine(config, int(local_rank), int(local_processes))
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield machine
        return
    if machine.device.type == "mps":
        raise CommonError("several processes cannot train on Apple's GPU: start one, or set runtime.device=cpu")
    # gloo carries data that is never on a GPU: flags, counts and text
    backend = "cpu:gloo,cuda:nccl" if machine.device.type == "cuda" else "gloo"
    try:
        _join(backend, timedelta(minutes=config.timeout_minutes))
        yield machine
    except (SystemExit, CommonError):  # every process raises these, so all can leave the group
        dist.destroy_process_group()
        raise
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        message = (
            f"nmt: rank {os.environ['RANK']} stops because another process has ended (its own error says why) "
            f"or has not answered for runtime.timeout_minutes={config.timeout_minutes:g}; "
            "the same command resumes from the last checkpoint"
        )
        print(message, file=sys.stderr, flush=True)  # now, because torchrun is about to kill this process too
        raise SystemExit(1) from error
    dist.destroy_process_group()  # not after other errors: it would wait for processes that may have ended


@contextmanager
def together() -> Iterator[None]:
    """Raise in all processes, with the same message, a UserError that any process meets in this block."""
    message = ""
    try:
        yield
    except UserError as error:
        message = str(error)
    for each in gather_objects(message):
        if each:
            raise CommonError(each)


def check_same(values: Mapping[str, object], what: str) -> None:
    """Raise in all processes if the values of one differ from those of rank 0; `what` names them in the error."""
    first, *others = gather_objects(dict(values))
    for number, theirs in enumerate(others, start=1):
        for key in sorted(first.keys() | theirs.keys()):
            if first.get(key) != theirs.get(key):
                raise CommonError(
                    f"rank {number} has other {what} than rank 0: {key} is {theirs.get(key)}, not {first.get(key)}. "
                    "Start all processes with the same command, on folders that they share"
                )


def _is_lost_connection(error: RuntimeError) -> bool:
    """Return whether an error means that another process is unreachable; gloo has no error type for that."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _join(backend: str, timeout: timedelta) -> None:
    """Form a process group through the store whose address torchrun put into the environment."""
    try:
        store, own_rank, size = next(rendezvous("env://", timeout=timeout))
    except ValueError as error:
        raise UserError(
            f"the environment has WORLD_SIZE={os.environ['WORLD_SIZE']} but is not torchrun's ({error}): "
            "start several processes with scripts/torchrun, or unset WORLD_SIZE for one"
        ) from error
    store.set_timeout(timeout)
    attempt = PrefixStore(_attempt(store, own_rank, size, timeout), store)
    dist.init_process_group(backend, store=attempt, rank=own_rank, world_size=size, timeout=timeout)


def _attempt(store: Store, own_rank: int, size: int, timeout: timedelta) -> str:
    """Return a name that the processes of this attempt share, and that no earlier attempt had.

    After torchrun restarts processes, the store still holds what the earlier ones wrote, including their addresses.
    Its counter of attempts differs between machines, so it cannot identify an attempt. Therefore every process
    asks a question under a new key, which only a rank 0 that is alive answers.
    """
    if own_rank > 0:
        question = uuid4().hex
        store.set(f"question/{own_rank}", question)
        name = str(store.get(f"answer/{question}"), "ascii")
        store.set(f"heard/{name}/{own_rank}", "")
        return name
    name, deadline = uuid4().hex, time.monotonic() + timeout.total_seconds()
    missing = set(range(1, size))
    while missing:
        for other in missing:
            store.set(f"answer/{str(store.get(f'question/{other}'), 'ascii')}", name)
        missing = {other for other in missing if not store.check([f"heard/{name}/{other}"])}
        if time.monotonic() > deadline:
            raise dist.DistStoreError(f"ranks {sorted(missing)} did not join")
        time.sleep(POLL_SECONDS)
    return name


def parallel(model: nn.Module, *, rounded: bool) -> nn.Module:
    """Return the model wrapped to average its gradients over all processes; in bf16 if `rounded`."""
    if world_size() == 1:
        return model
    with warnings.catch_warnings():  # PyTorch 2.13 renames broadcast_buffers, but 2.11 knows no other name
        warnings.simplefilter("ignore", FutureWarning)
        shared = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    if rounded:  # PyTorch's own bf16 hook does not support CPUs
        shared.register_comm_hook(None, _average_in_bf16)
    return shared


def _average_in_bf16(
    _: None,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    gradients: Tensor = bucket.buffer()
    summed = dist.all_reduce(gradients.to(torch.bfloat16).div_(world_size()), async_op=True)
    averaged: torch.futures.Future[Tensor] = summed.get_future().then(lambda done: gradients.copy_(done.value()[0]))
    return averaged


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
        if not is_main():
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


def average(values: Tensor, *, rounded: bool) -> Tensor:
    """Return the mean of `values` over all processes; computed in bf16 if `rounded`."""
    means = values.to(torch.bfloat16) if rounded else values
    if dist.is_initialized():
        dist.all_reduce(means.div_(world_size()))
    return means.to(values.dtype)


@contextmanager
def last_only(model: nn.Module, last: bool) -> Iterator[None]:
    """Average gradients over the processes only in the `last` backward pass of a step."""
    if last or not isinstance(model, DistributedDataParallel):
        yield
    else:
        with model.no_sync():
            yield


def sum_over_processes(values: Tensor) -> Tensor:
    """Replace each element by its sum over all processes, in place."""
    if dist.is_initialized():
        dist.all_reduce(values)
    return values


def compute_in_parts(function: Callable[[Sequence[Tensor]], Tensor], arguments: Sequence[Tensor]) -> Tensor:
    """Return `function(arguments)`, of which each process computes an equal part.

    All processes need the same arguments. The function returns a stack with a result for each of them, of the same
    shape and type, and none may depend on others.
    """
    if world_size() == 1:
        return function(arguments)
    size = -(-len(arguments) // world_size())
    own = arguments[rank() * size : (rank() + 1) * size]
    part = arguments[0].new_zeros(size, *arguments[0].shape)
    if own:
        part[: len(own)] = function(own)
    results = part.new_empty(size * world_size(), *arguments[0].shape)
    _gather_into(results, part)
    return results[: len(arguments)]


def gather_numbers(number: Tensor) -> Tensor:
    """Return the numbers () of all processes as a vector, in the order of their ranks."""
    if not dist.is_initialized():
        return number[None]
    numbers = number.new_empty(world_size())
    _gather_into(numbers, number[None])
    return numbers


def _gather_into(whole: Tensor, part: Tensor) -> None:
    """Fill a tensor with the parts of all processes, one after the other."""
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # PyTorch 2.13 renamed it
    gather(whole, part)


def highest(value: int) -> int:
    """Return the highest value of any process."""
    return _highest_of_each([value])[0]


def agree(record: Record) -> Record:
    """Return the element-wise maximum of a record over all processes, so that all decide the same.

    Each field keeps its type, so a boolean is true if it is true in any process.
    """
    fields = (type(value)(highest) for value, highest in zip(record, _highest_of_each(record), strict=True))
    return type(record)(*fields)  # type: ignore[arg-type]  # mypy takes it for a plain tuple


def _highest_of_each(values: Sequence[int]) -> Sequence[int]:
    """Return the highest value of any process at each place."""
    if not dist.is_initialized():
        return values
    shared = torch.tensor(list(values), dtype=torch.int64)
    dist.all_reduce(shared, dist.ReduceOp.MAX)
    return cast(list[int], shared.tolist())


def gather_objects(value: T) -> list[T]:
    """Return the values of all processes, in the order of their ranks."""
    if not dist.is_initialized():
        return [value]
    values: list[T | None] = [None] * world_size()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def barrier() -> None:
    """Wait until all processes have called this."""
    if dist.is_initialized():
        dist.barrier()
