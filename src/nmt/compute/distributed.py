"""Several processes that train one model; the only module that knows torch.distributed.

Every function also works in a process on its own, where it costs nothing.
"""

import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar
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


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main() -> bool:
    """Whether this is the process that writes and reports."""
    return rank() == 0


@contextmanager
def session(config: RuntimeConfig) -> Iterator[Machine]:
    """Join the other processes that torchrun started, if it did, and choose this process's device."""
    local_rank, local_processes = os.environ.get("LOCAL_RANK", "0"), os.environ.get("LOCAL_WORLD_SIZE", "1")
    machine = prepare_machine(config, int(local_rank), int(local_processes))
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield machine
        return
    # the second backend carries what never touches a device: flags, counts, text
    backend = "cpu:gloo,cuda:nccl" if machine.device.type == "cuda" else "gloo"
    try:
        _join(backend, timedelta(minutes=config.timeout_minutes))
        yield machine
    except (SystemExit, CommonError):  # all leave together
        dist.destroy_process_group()
        raise
    except RuntimeError as error:
        if not _is_lost(error):
            raise
        message = (
            f"nmt: rank {os.environ['RANK']} stops, for another process has ended (its own error says why) "
            f"or has not answered for runtime.timeout_minutes={config.timeout_minutes:g}; "
            "the same command goes on from the last checkpoint"
        )
        print(message, file=sys.stderr, flush=True)  # now: the launcher is about to end this process, too
        raise SystemExit(1) from error
    dist.destroy_process_group()  # not after an error: it would wait for processes that may have ended


@contextmanager
def together() -> Iterator[None]:
    """What a user can mend and any process meets in the block, all processes raise, in the same words."""
    met = ""
    try:
        yield
    except UserError as error:
        met = str(error)
    for message in gather_objects(met):
        if message:
            raise CommonError(message)


def check_same(values: Mapping[str, object], what: str) -> None:
    """Refuse to go on where a process has other values than the first; all processes refuse together."""
    first, *others = gather_objects(dict(values))
    for number, theirs in enumerate(others, start=1):
        for key in sorted(first.keys() | theirs.keys()):
            if first.get(key) != theirs.get(key):
                raise CommonError(
                    f"rank {number} has other {what} than rank 0: {key} is {theirs.get(key)}, not {first.get(key)}. "
                    "Start all processes with the same command, on folders that they share"
                )


def _is_lost(error: RuntimeError) -> bool:
    """Whether an error says that another process cannot be reached; gloo's have no type of their own."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _join(backend: str, timeout: timedelta) -> None:
    """Meet the others through the store of which torchrun has told us."""
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
    """A name that the processes of this attempt share, and none of an attempt before it.

    When torchrun starts processes again, the store still holds what those before them wrote, their addresses too; and
    its count of attempts differs between machines. So each process asks under a name that is new, and only a first
    process that lives answers that.
    """
    if own_rank > 0:
        question = uuid4().hex
        store.set(f"question/{own_rank}", question)
        name = str(store.get(f"answer/{question}"), "ascii")
        store.set(f"heard/{name}/{own_rank}", "")
        return name
    name, deadline = uuid4().hex, time.monotonic() + timeout.total_seconds()
    deaf = set(range(1, size))
    while deaf:
        for other in deaf:
            store.set(f"answer/{str(store.get(f'question/{other}'), 'ascii')}", name)
        deaf = {other for other in deaf if not store.check([f"heard/{name}/{other}"])}
        if time.monotonic() > deadline:
            raise dist.DistStoreError(f"ranks {sorted(deaf)} have not come")
        time.sleep(0.05)
    return name


def parallel(model: nn.Module, *, rounded: bool) -> nn.Module:
    """The same model, its gradients averaged over the processes during each backward pass; in bf16 if `rounded`."""
    if world_size() == 1:
        return model
    with warnings.catch_warnings():  # PyTorch 2.13 calls broadcast_buffers otherwise, and 2.11 knows no other name
        warnings.simplefilter("ignore", FutureWarning)
        shared = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    if rounded:  # PyTorch's own hook for it takes no CPU
        shared.register_comm_hook(None, _average_rounded)
    return shared


def _average_rounded(
    _: None,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    gradients: Tensor = bucket.buffer()
    summed = dist.all_reduce(gradients.to(torch.bfloat16).div_(world_size()), async_op=True)
    averaged: torch.futures.Future[Tensor] = summed.get_future().then(lambda done: gradients.copy_(done.value()[0]))
    return averaged


@contextmanager
def last_only(model: nn.Module, last: bool) -> Iterator[None]:
    """Average gradients over the processes only in the `last` of the backward passes of a step."""
    if last or not isinstance(model, DistributedDataParallel):
        yield
    else:
        with model.no_sync():
            yield


def sum_over_processes(values: Tensor) -> Tensor:
    """Elementwise sum over all processes, in place."""
    if dist.is_initialized():
        dist.all_reduce(values)
    return values


def highest(value: int) -> int:
    """The highest value that any process has: all agree on it."""
    if not dist.is_initialized():
        return value
    shared = torch.tensor(value)
    dist.all_reduce(shared, dist.ReduceOp.MAX)
    return int(shared)


def gather_objects(value: T) -> list[T]:
    """The value of every process, in order of rank."""
    if not dist.is_initialized():
        return [value]
    values: list[T | None] = [None] * world_size()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def barrier() -> None:
    """Wait for the others."""
    if dist.is_initialized():
        dist.barrier()
