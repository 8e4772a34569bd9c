"""A run goes on without a machine that is lost: two of torchrun's agents stand for two machines."""

import os
import signal
import socket
import subprocess
import sys
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


def agent(port: int, words: list[str], waiting: Path) -> subprocess.Popen[str]:
    """Start torchrun as a machine of its own would, with one process."""
    torchrun = [
        str(TOP / "scripts" / "torchrun"), "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3",
        "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=lost", f"--rdzv-conf={IMPATIENT}",
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, *torchrun, "-m", "tests.integration.faulty", "tell", "13", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TOP, start_new_session=True,
        env={**environment(), "WAITING": str(waiting)},
    )  # fmt: skip


@pytest.mark.slow
def test_the_run_goes_on_from_its_checkpoint_on_the_machine_that_remains(settings: list[str], tmp_path: Path) -> None:
    outputs, waiting, port = tmp_path / "outputs", tmp_path / "waiting", free_port()
    same = ["model.dropout=0", "training.adam_eps=1e-5", f"paths.outputs={outputs}"]
    words = ["train", *settings, *SHORT, *same]
    agents = [agent(port, words, waiting)]
    wait_for(lambda: listens(port))  # the first agent has the store, and the second one is lost
    agents.append(agent(port, words, waiting))
    try:
        wait_for(waiting.exists, seconds=180)
        launcher, worker = map(int, waiting.read_text().split())
        assert launcher == agents[1].pid
        for each in (launcher, worker):  # as when the power fails
            os.kill(each, signal.SIGKILL)
        output, said = agents[0].communicate(timeout=240)
    finally:
        for running in agents:
            running.kill()
    assert agents[0].returncode == 0, said
    assert "2 x 200 on cpu" in output
    assert "going on from step 10" in output
    assert "1 x 400 on cpu" in output
    assert "rank 0 stops because another process has ended" in said
    assert [step for step, *_ in losses(outputs)] == list(range(1, 21))
