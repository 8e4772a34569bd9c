"""Join the processes that torchrun has started, and leave them."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.tree import RuntimeConfig
from nmt.errors import CommonError, UserError
from nmt.launched import launched_processes

POLL_SECONDS = 0.05
"""Seconds between rank 0's checks for processes that have not answered yet."""


@contextmanager
def session(config: RuntimeConfig) -> Iterator[Machine]:
    """Choose this process's device, and join the other processes if torchrun started several."""
    local_rank, local_processes = os.environ.get("LOCAL_RANK", "0"), os.environ.get("LOCAL_WORLD_SIZE", "1")
    machine = prepare_machine(config, int(local_rank), int(local_processes))
    if launched_processes() == 1:
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
            "start several processes with torchrun, or unset WORLD_SIZE for one"
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
