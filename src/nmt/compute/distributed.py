"""Join the processes that torchrun has started, and what they tell each other.

Every function also works in a single process, where it costs nothing.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar, cast
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.tree import RuntimeConfig
from nmt.errors import CommonError, UserError
from nmt.launched import launched_processes

T = TypeVar("T")
SIGNS_OF_LOST_CONNECTION = ("gloo", "caused pair closure")
"""Parts of the messages of gloo's errors, which have no type: the second one, if an earlier operation timed out."""
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


_groups: list[dist.ProcessGroup | None] = []
"""All groups of this process, so that none is freed. Freeing one waits for its threads and keeps the interpreter's lock
meanwhile, for which a thread of gloo may wait to let go of a tensor."""


@contextmanager
def session(config: RuntimeConfig) -> Iterator[Machine]:
    """Choose this process's device, and join the other processes if torchrun started several."""
    local_rank, local_processes = os.environ.get("LOCAL_RANK", "0"), os.environ.get("LOCAL_WORLD_SIZE", "1")
    machine = prepare_machine(config, int(local_rank), int(local_processes))
    if launched_processes() == 1:
        yield machine
        return
    # gloo carries data that is never on a GPU: flags, counts and text
    backend = "cpu:gloo,cuda:nccl" if machine.device.type == "cuda" else "gloo"
    timeout = timedelta(minutes=config.timeout_minutes)
    try:
        _join(backend, timeout)
        yield machine
    except (SystemExit, CommonError):  # every process raises these, so all can leave the group
        dist.destroy_process_group()
        raise
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and not any(sign in str(error) for sign in SIGNS_OF_LOST_CONNECTION):
            raise
        message = (
            f"nmt: rank {os.environ['RANK']} stops because another process has ended (its own error says why) "
            f"or has not answered for runtime.timeout_minutes={config.timeout_minutes:g}; "
            "the same command resumes from the last checkpoint"
        )
        print(message, file=sys.stderr, flush=True)  # now, because torchrun is about to kill this process too
        raise SystemExit(1) from error
    dist.destroy_process_group()  # not after other errors: it would wait for processes that may have ended


def _join(backend: str, timeout: timedelta) -> None:
    """Form a process group through the store whose address torchrun put into the environment."""
    try:
        store, own_rank, size = next(rendezvous("env://", timeout=timeout))
    except ValueError as error:
        raise UserError(
            f"the environment has WORLD_SIZE={os.environ['WORLD_SIZE']} but is not torchrun's ({error}): "
            "start several processes with torchrun, or unset WORLD_SIZE for one"
        ) from error
    store.set_timeout(timeout)
    attempt = PrefixStore(_attempt(store, own_rank, size, timeout), store)
    dist.init_process_group(backend, store=attempt, rank=own_rank, world_size=size, timeout=timeout)
    _groups.append(dist.group.WORLD)


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
    name, deadline, missing = uuid4().hex, time.monotonic() + timeout.total_seconds(), {*range(1, size)}
    while missing:
        for other in missing:
            store.set(f"answer/{str(store.get(f'question/{other}'), 'ascii')}", name)
        missing = {other for other in missing if not store.check([f"heard/{name}/{other}"])}
        if time.monotonic() > deadline:
            raise dist.DistStoreError(f"ranks {sorted(missing)} did not join")
        time.sleep(POLL_SECONDS)
    return name


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
    dist.all_gather(list(results.split(size)), part)
    return results[: len(arguments)]


def highest(value: int) -> int:
    """Return the highest value of any process."""
    return highest_of_each([value])()[0]


def highest_of_each(values: Sequence[int]) -> Callable[[], Sequence[int]]:
    """Begin to find the highest value of any process at each place; the result waits for it, and returns them."""
    if not dist.is_initialized():
        return lambda: values
    shared = torch.tensor(list(values), dtype=torch.int64)
    found = dist.all_reduce(shared, dist.ReduceOp.MAX, async_op=True)

    def wait() -> Sequence[int]:
        found.wait()
        return cast(list[int], shared.tolist())

    return wait


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
