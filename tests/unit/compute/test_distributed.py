"""Processes find each other and agree."""

import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from nmt.compute import distributed
from nmt.compute.distributed import _attempt, compute_in_parts, session, together
from nmt.config.tree import RuntimeConfig
from nmt.errors import UserError
from tests.quick_processes import start_group

SOON = timedelta(seconds=60)


@pytest.fixture
def server() -> TCPStore:
    """Return a store such as torchrun keeps over all attempts."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=SOON)


def meet(server: TCPStore, late: Sequence[float], timeout: timedelta = SOON, size: int = 0) -> list[str]:
    """Return the name that each process of an attempt gets; process i starts after `late[i]` seconds."""

    def join(rank: int) -> str:
        store = TCPStore("127.0.0.1", server.port, is_master=False, timeout=SOON)
        time.sleep(late[rank])
        return _attempt(store, rank, size or len(late), timeout)

    with ThreadPoolExecutor(len(late)) as processes:
        return list(processes.map(join, range(len(late))))


@pytest.mark.parametrize("others", [{}, {"RANK": "0"}, {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "x"}])
def test_an_environment_not_set_by_torchrun_is_refused(others: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORLD_SIZE": "2", **others}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="WORLD_SIZE=2 but is not torchrun's"), session(RuntimeConfig(device="cpu")):
        pass


@pytest.mark.parametrize("late", [(0, 0, 0), (0.2, 0, 0), (0, 0.1, 0.2)])
def test_processes_of_an_attempt_share_a_new_name(server: TCPStore, late: Sequence[float]) -> None:
    names = [meet(server, late) for _ in range(2)]
    assert all(len(set(attempt)) == 1 for attempt in names)
    assert len({attempt[0] for attempt in names}) == 2


def double_in_parts() -> None:
    """Double few and many numbers together with the other processes of a group."""
    with session(RuntimeConfig(device="cpu")):
        for count in (1, 7):
            check_parts(count)


def check_parts(count: int) -> None:
    numbers = [torch.full((2,), float(number)) for number in range(count)]
    own: list[Tensor] = []

    def double(part: Sequence[Tensor]) -> Tensor:
        own.extend(part)
        return torch.stack(list(part)) * 2

    doubled = compute_in_parts(double, numbers)
    size = -(-count // dist.get_world_size())
    first = dist.get_rank() * size
    assert [int(number[0]) for number in own] == list(range(count))[first : first + size]
    assert torch.equal(doubled, torch.stack(numbers) * 2)


def test_processes_share_a_computation() -> None:
    ended = [each.wait() for each in start_group(double_in_parts, processes=3)]
    assert [each.returncode for each in ended] == [0, 0, 0], ended[0].stderr


def fail_in_main(how: str) -> None:
    with session(RuntimeConfig(device="cpu")), together():
        if distributed.is_main():
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise UserError("the disk is full")


@pytest.mark.parametrize(("how", "codes"), [("kill", [-signal.SIGKILL, 1]), ("refuse", [1, 1])])
def test_all_processes_end_if_one_does(how: str, codes: list[int]) -> None:
    ended = [each.wait() for each in start_group(fail_in_main, how, processes=2)]
    assert [each.returncode for each in ended] == codes, ended[1].stderr
    assert ("rank 1 stops because another process has ended" in ended[1].stderr) == (how == "kill")
    assert ("CommonError: the disk is full" in ended[1].stderr) == (how == "refuse")
