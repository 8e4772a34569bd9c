"""Two processes that train together, as torchrun would start them, and what happens when one of them fails."""

import os
import signal
import socket
import time
from pathlib import Path

from injuries import Injury, nothing
from workshop import Done, Running, Workshop

SOON = 15
"""Seconds in which a process must notice that the other has ended."""
SHORT = "runtime.timeout_minutes=0.08"


def run_pair(
    shop: Workshop, folder: Path, *more: str, injury: Injury = nothing, second: tuple[str, ...] = ()
) -> list[Done]:
    """Train in two processes; the fault, and the settings `second`, are the second one's."""
    port = _free_port()
    processes = [
        shop.start("train", folder, *more, injury=_joined(0, port, nothing)),
        shop.start("train", folder, *more, *second, injury=_joined(1, port, injury), rank=1),
    ]
    return _supervise(processes)


def prepare_pair(shop: Workshop) -> None:
    """Find out what two processes make that nothing interrupts."""
    folder = shop.copy("train", shop.folder / "pair")
    ended = run_pair(shop, folder)
    if any(done.code for done in ended):
        raise RuntimeError(f"two processes do not even work uninterrupted: {ended[0].errors}{ended[1].errors}")
    shop.products_of_pair = shop.products_of(folder)


def _joined(rank: int, port: int, injury: Injury) -> Injury:
    def set_up() -> None:
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        )  # fmt: skip
        injury()

    return set_up


def _supervise(processes: list[Running]) -> list[Done]:
    """Wait for all; those that have not ended by themselves soon after the first failure are made to."""
    ended: dict[int, Done] = {}
    failed = 0.0
    while len(ended) < len(processes):
        for number, process in enumerate(processes):
            if number not in ended and (code := process.poll()) is not None:
                ended[number] = process.done(code)
                if code and not failed:
                    failed = time.monotonic()
            elif number not in ended and failed and time.monotonic() - failed > SOON:
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    return [ended[number] for number in range(len(processes))]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
