"""How processes find each other."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from nmt.compute.distributed import _attempt, session
from nmt.config.schema import RuntimeConfig
from nmt.errors import UserError

SOON = timedelta(seconds=20)


@pytest.fixture
def server() -> TCPStore:
    """The store that torchrun keeps from attempt to attempt."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=SOON)


def meet(server: TCPStore, late: Sequence[float], timeout: timedelta = SOON, size: int = 0) -> list[str]:
    """The name that each process of an attempt comes to, where each is late by some seconds."""

    def come(rank: int) -> str:
        store = TCPStore("127.0.0.1", server.port, is_master=False, timeout=SOON)
        time.sleep(late[rank])
        return _attempt(store, rank, size or len(late), timeout)

    with ThreadPoolExecutor(len(late)) as processes:
        return list(processes.map(come, range(len(late))))


@pytest.mark.parametrize("others", [{}, {"RANK": "0"}, {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "x"}])
def test_an_environment_that_is_not_torchruns(others: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORLD_SIZE": "2", **others}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="WORLD_SIZE=2 but is not torchrun's"), session(RuntimeConfig(device="cpu")):
        pass


@pytest.mark.parametrize("late", [(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0.2, 0.4)])
def test_an_attempt_shares_a_name_that_none_before_it_had(server: TCPStore, late: Sequence[float]) -> None:
    names = [meet(server, late) for _ in range(3)]
    assert all(len(set(attempt)) == 1 for attempt in names)
    assert len({attempt[0] for attempt in names}) == 3


def test_a_process_that_asked_and_ended_is_not_waited_for(server: TCPStore) -> None:
    """As in an attempt that failed while its processes were still coming."""
    server.set("question/1", "of a process that has ended")
    first, second = meet(server, (0, 0.2))
    assert first == second


def test_one_that_never_comes_is_given_up(server: TCPStore) -> None:
    meet(server, (0, 0))  # what it wrote in an earlier attempt does not stand for it
    with pytest.raises(dist.DistStoreError, match=r"ranks \[1\] have not come"):
        meet(server, (0,), timedelta(seconds=0.3), size=2)
