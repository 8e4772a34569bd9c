"""Run `nmt` with a fault at a step of one of its processes: python -m tests.integration.faulty FAULT STEP WORDS."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import torch

from nmt import cli
from nmt.compute.signals import Interruptible
from nmt.data.loader import GlobalBatch
from nmt.storage.files import write_text
from nmt.training.trainer import Trainer

FAULTY_RANK = "1"


def _drift(trainer: Trainer) -> None:
    with torch.no_grad():
        next(trainer.model.parameters()).view(-1)[0] += 1e-3


def _wait(_: Trainer) -> None:
    """Write the number of this process, wait for a signal, and pass it on."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR1):
        handler = signal.getsignal(number)
        assert callable(handler)
        signal.signal(number, _noting(received, handler))
    write_text(Path(os.environ["WAITING"]), str(os.getpid()))
    while not received:
        time.sleep(0.01)


def _noting(received: list[int], handler: Callable[..., object]) -> Callable[[int, FrameType | None], object]:
    def note(number: int, frame: FrameType | None) -> object:
        received.append(number)
        return handler(number, frame)

    return note


FAULTS: dict[str, Callable[[Trainer], None]] = {
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "drift": _drift,
    "end": lambda _: os.kill(os.getpid(), signal.SIGTERM),
    "wait": _wait,
}


def inject(fault: str, step: int) -> None:
    """Inject a fault into a step, after its batch is read and before its gradient is computed."""
    update = Trainer.update

    def faulty(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
        if self.step + 1 == step:
            FAULTS[fault](self)
        update(self, work, interruptible)

    Trainer.update = faulty  # type: ignore[assignment,method-assign]


def main(kind: str, number: str, *words: str) -> int:
    """Run `nmt` with a fault, if this process is to have it; return its exit code."""
    if os.environ.get("RANK", FAULTY_RANK) == FAULTY_RANK:
        if kind == "settings":
            words += ("training.clip_norm=1",)
        else:
            inject(kind, int(number))
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
