"""Train in two processes, as torchrun would start them, to inject a fault into one of them."""

import os
import signal
import time
from pathlib import Path

from faults.injections import Injection, nothing
from faults.sandbox import Result, Running, Sandbox
from shared.ports import free_port

EXIT_SECONDS = 15
"""Seconds within which a process must notice that the other has ended."""
SHORT_TIMEOUT = "runtime.timeout_minutes=0.08"


def run_pair(
    sandbox: Sandbox, folder: Path, *more: str, injection: Injection = nothing, second: tuple[str, ...] = ()
) -> list[Result]:
    """Train in two processes; the fault and the settings `second` apply to the second process only."""
    port = free_port()
    processes = [
        sandbox.start("train", folder, *more, injection=_joined(0, port, nothing)),
        sandbox.start("train", folder, *more, *second, injection=_joined(1, port, injection), rank=1),
    ]
    return _supervise(processes)


def prepare_pair(sandbox: Sandbox) -> None:
    """Record the files of two uninterrupted processes."""
    folder = sandbox.copy("train", sandbox.folder / "pair")
    ended = run_pair(sandbox, folder)
    if any(done.code for done in ended):
        raise RuntimeError(f"two processes fail even without a fault: {ended[0].errors}{ended[1].errors}")
    sandbox.products_of_pair = sandbox.products_of(folder)


def _joined(rank: int, port: int, injection: Injection) -> Injection:
    def set_up() -> None:
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        )  # fmt: skip
        injection()

    return set_up


def _supervise(processes: list[Running]) -> list[Result]:
    """Wait for all processes, and kill those that keep running long after the first failure."""
    ended: dict[int, Result] = {}
    failed = 0.0
    while len(ended) < len(processes):
        for number, process in enumerate(processes):
            if number not in ended and (code := process.poll()) is not None:
                ended[number] = process.result(code)
                if code and not failed:
                    failed = time.monotonic()
            elif number not in ended and failed and time.monotonic() - failed > EXIT_SECONDS:
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    return [ended[number] for number in range(len(processes))]
