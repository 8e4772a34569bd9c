"""Faults that are set up inside the forked child, before the command that meets them."""

import errno
import itertools
import os
import resource
import signal
import time
from collections.abc import Callable
from mmap import mmap
from typing import Any

import torch

from nmt.compute.signals import Interruptible
from nmt.data.loader import GlobalBatch
from nmt.training.trainer import Trainer

Injection = Callable[[], None]
FILE_CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir", "symlink")
"""Functions of `os` through which every complete file or folder is written."""


def nothing() -> None:
    """Inject no fault."""


def kill() -> None:
    """Kill this process, like a power failure."""
    os.kill(os.getpid(), signal.SIGKILL)


def count_file_calls(report: int) -> tuple[Injection, Callable[[], None]]:
    """Return an injection that counts file operations, and a function that writes the count to a pipe at the end."""
    counter = itertools.count()

    def count(call: Callable[[], Any]) -> Any:
        next(counter)
        return call()

    return lambda: _wrap_file_calls(count), lambda: (os.write(report, str(next(counter)).encode()), None)[1]


def at_file_call(number: int, act: Callable[[], None], *, after: bool, met: mmap) -> Injection:
    """Return an injection that calls `act` before or after the n-th file operation, and sets the byte `met` first."""
    counter = itertools.count()

    def meet(call: Callable[[], Any]) -> Any:
        due = next(counter) == number
        if due:
            met[0] = 1
        if due and not after:
            act()
        result = call()
        if due and after:
            act()
        return result

    return lambda: _wrap_file_calls(meet)


def fail_with(code: int) -> Callable[[], None]:
    """Return a function that raises an error of the operating system."""

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


disk_full = fail_with(errno.ENOSPC)
disk_broken = fail_with(errno.EIO)


def largest_file(size: int, *, deadly: bool) -> Injection:
    """Limit the size of files: a longer write fails, or, if `deadly`, kills the process in the middle."""

    def set_up() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)

    return set_up


def clock_back() -> None:
    """Set the clock of this process back by 400 days."""
    now = time.time
    time.time = lambda: now() - 400 * 24 * 3600


def at_step(step: int, act: Callable[[Trainer], None]) -> Injection:
    """Return an injection that calls `act` at the start of a training step."""
    update = Trainer.update

    def faulty(self: Trainer, batch: GlobalBatch, interruptible: Interruptible) -> None:
        if self.step + 1 == step:
            act(self)
        update(self, batch, interruptible)

    return _replacing_update(faulty)


def _replacing_update(faulty: Callable[[Trainer, GlobalBatch, Interruptible], None]) -> Injection:
    def set_up() -> None:
        Trainer.update = faulty  # type: ignore[method-assign, assignment]

    return set_up


def poison(steps: range) -> Injection:
    """Return an injection that makes the gradients of some steps NaN."""
    update = Trainer.update

    def faulty(self: Trainer, batch: GlobalBatch, interruptible: Interruptible) -> None:
        factor = torch.nan if self.step + 1 in steps else 1.0
        hook = next(iter(self.model.parameters())).register_hook(lambda gradient: gradient * factor)
        update(self, batch, interruptible)
        hook.remove()

    return _replacing_update(faulty)


def no_memory(_: Trainer) -> None:
    """Raise what torch raises if a GPU is out of memory."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def no_memory_on_a_cpu(_: Trainer) -> None:
    """Make torch run out of CPU memory."""
    torch.empty(1 << 48, dtype=torch.uint8)


def drift(trainer: Trainer) -> None:
    """Change one weight, like a memory error."""
    with torch.no_grad():
        next(trainer.model.parameters()).view(-1)[0] += 1e-3


def raise_unexpected(_: Trainer) -> None:
    """Raise an error that no code expects."""
    raise ValueError("an unexpected error")


def unreachable_tracker() -> None:
    """Point Weights & Biases to an address without a server."""
    os.environ.update(WANDB_MODE="online", WANDB_BASE_URL="http://127.0.0.1:9", WANDB_API_KEY="0" * 40)
    from nmt.runs import services  # noqa: PLC0415 - patched only in the child

    services.INIT_SECONDS = services.FINISH_SECONDS = 3


def _wrap_file_calls(meet: Callable[[Callable[[], Any]], Any]) -> None:
    for name in FILE_CALLS:
        original = getattr(os, name)

        def wrapped(*words: Any, _original: Callable[..., Any] = original, **options: Any) -> Any:
            return meet(lambda: _original(*words, **options))

        setattr(os, name, wrapped)
