"""Run functions in processes that start quickly: copies of one that has imported PyTorch, but has not used it yet."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore  # type: ignore[attr-defined]

from nmt.cli import main
from tests.integration.toy import environment

COPIES = get_context("forkserver")
COPIES.set_forkserver_preload(
    [
        *("nmt.config.compose", "nmt.commands.train", "nmt.synthesis.command", "nmt.serving.server"),
        "torch._dynamo",  # optimizers import it
        "tests.compiled_operations",
    ]
)


class Running:
    """A function that runs in a process of its own; what it returns is the exit code."""

    def __init__(
        self, function: Callable[..., object], *arguments: object, store: TCPStore | None = None, **variables: str
    ) -> None:
        """Start the function, with these environment variables besides the usual ones, and keep a store for it."""
        self.store = store
        self.logs = Path(tempfile.mkdtemp())
        (self.logs / "output").touch()
        variables = {**environment(), **variables}
        self.process = COPIES.Process(target=_run, args=(function, arguments, variables, self.logs))
        self.process.start()

    @property
    def output(self) -> str:
        """What the process has written to standard output until now."""
        return (self.logs / "output").read_text(encoding="utf-8")

    def send_signal(self, number: int) -> None:
        """Send the process a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Return the exit code and the output; a process that takes longer is killed."""
        self.process.join(seconds)
        self.process.kill()
        self.process.join()
        output, errors = ((self.logs / name).read_text(encoding="utf-8") for name in ("output", "errors"))
        shutil.rmtree(self.logs)
        assert self.process.exitcode is not None
        return subprocess.CompletedProcess((), self.process.exitcode, output, errors)


def start_group(function: Callable[..., object], *arguments: object, processes: int) -> list[Running]:
    """Start a function in several processes that train together, as torchrun would start them.

    As with torchrun, this process has the store in which they meet, so that nothing else can take its port meanwhile.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    group |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    group |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(processes))
    ranks = [str(rank) for rank in range(processes)]
    return [Running(function, *arguments, store=store, RANK=rank, LOCAL_RANK=rank, **group) for rank in ranks]


def run_together(arguments: Sequence[str], processes: int) -> subprocess.CompletedProcess[str]:
    """Run `nmt` in several processes; return the result of the first that fails, or of rank 0."""
    ended = [each.wait() for each in start_group(main, arguments, processes=processes)]
    return next((each for each in ended if each.returncode), ended[0])


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return as soon as a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def _run(function: Callable[..., Any], arguments: Sequence[object], variables: dict[str, str], logs: Path) -> None:
    os.environ.clear()
    os.environ.update(variables)
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(logs / name, os.O_WRONLY | os.O_CREAT), number)
    sys.exit(function(*arguments))
