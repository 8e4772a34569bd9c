"""A run goes on without a machine that is lost: two of torchrun's agents stand for two machines."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.conftest import corpus, settings
from tests.integration.test_ranks import SHORT, TOP
from tests.integration.test_training import losses
from tests.integration.toy import environment
from tests.quick_processes import wait_for

__all__ = ["corpus", "settings"]

IMPATIENT = "join_timeout=120,last_call_timeout=20,keep_alive_interval=1,keep_alive_max_attempt=3"
"""torchrun waits for half a minute for other machines by default."""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def agent(port: int, fault: str, words: list[str], waiting: Path) -> subprocess.Popen[str]:
    """Start torchrun as a machine of its own would, with one process."""
    torchrun = [
        "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3",
        "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=lost", f"--rdzv-conf={IMPATIENT}",
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, *torchrun, "-m", "tests.integration.faulty", fault, "13", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TOP, start_new_session=True,
        env={**environment(), "WAITING": str(waiting)},
    )  # fmt: skip


@pytest.fixture
def words(settings: list[str], tmp_path: Path) -> list[str]:
    """Return what to train, the same on any number of processes up to rounding."""
    same = ["model.dropout=0", "training.adam_eps=1e-5", f"paths.outputs={tmp_path / 'outputs'}"]
    return ["train", *settings, *SHORT, *same]


@contextmanager
def machines(fault: str, words: list[str], waiting: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Start two agents, of which the first has the store and the second has a process with a fault."""
    port = free_port()
    agents = [agent(port, fault, words, waiting)]
    try:
        wait_for(lambda: listens(port))
        agents.append(agent(port, fault, words, waiting))
        wait_for(waiting.exists, seconds=180)
        yield agents
    finally:
        for running in agents:
            running.kill()


@pytest.mark.slow
def test_the_run_goes_on_from_its_checkpoint_on_the_machine_that_remains(words: list[str], tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    with machines("tell", words, waiting) as agents:
        launcher, worker = map(int, waiting.read_text().split())
        assert launcher == agents[1].pid
        for each in (launcher, worker):  # as when the power fails
            os.kill(each, signal.SIGKILL)
        output, said = agents[0].communicate(timeout=240)
    assert agents[0].returncode == 0, said
    assert "rank 0 stops because another process has ended" in said
    assert "on 2 x cpu in fp32" in output
    assert "going on from step 10 " in output
    assert "tokens on cpu in fp32" in output
    assert [step for step, *_ in losses(tmp_path / "outputs")] == list(range(1, 21))
