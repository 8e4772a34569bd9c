"""Faults that a process does to itself: set up in a forked child, before the command that is to meet them."""

import errno
import itertools
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Any

import torch

from nmt.compute.signals import Interruptible
from nmt.data.loader import GlobalBatch
from nmt.training.trainer import Trainer

Injury = Callable[[], None]
FILE_CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir", "symlink")
"""What every whole file and folder goes through on its way to the disk."""


def nothing() -> None:
    """No fault at all."""


def kill() -> None:
    """End at once, as for want of power."""
    os.kill(os.getpid(), signal.SIGKILL)


def count_file_calls(report: int) -> tuple[Injury, Callable[[], None]]:
    """No fault, but the number of file operations: what to set up, and what writes the number to a pipe at the end."""
    counter = itertools.count()

    def count(call: Callable[[], Any]) -> Any:
        next(counter)
        return call()

    return lambda: _wrap_file_calls(count), lambda: (os.write(report, str(next(counter)).encode()), None)[1]


def at_file_call(number: int, act: Callable[[], None], *, after: bool) -> Injury:
    """Do something at the n-th file operation: before it is done, or after."""
    counter = itertools.count()

    def meet(call: Callable[[], Any]) -> Any:
        due = next(counter) == number
        if due and not after:
            act()
        result = call()
        if due and after:
            act()
        return result

    return lambda: _wrap_file_calls(meet)


def fail_with(code: int) -> Callable[[], None]:
    """An error of the operating system."""

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


disk_full = fail_with(errno.ENOSPC)
disk_broken = fail_with(errno.EIO)


def largest_file(size: int, *, deadly: bool) -> Injury:
    """Let no file grow beyond a size: the write fails, or the process is killed in the middle of it."""

    def set_up() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)

    return set_up


def clock_back() -> None:
    """Live in the past from now on."""
    now = time.time
    time.time = lambda: now() - 400 * 24 * 3600


def at_step(step: int, act: Callable[[Trainer], None]) -> Injury:
    """Do something in the middle of a training step."""
    update = Trainer.update

    def faulty(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
        if self.step + 1 == step:
            act(self)
        update(self, work, interruptible)

    def set_up() -> None:
        Trainer.update = faulty  # type: ignore[method-assign]

    return set_up


def poison(steps: range) -> Injury:
    """Make the gradient of some steps NaN."""
    update = Trainer.update

    def faulty(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
        factor = torch.nan if self.step + 1 in steps else 1.0
        hook = next(iter(self.model.parameters())).register_hook(lambda gradient: gradient * factor)
        update(self, work, interruptible)
        hook.remove()

    def set_up() -> None:
        Trainer.update = faulty  # type: ignore[method-assign]

    return set_up


def no_memory(_: Trainer) -> None:
    """What torch says on a GPU."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def no_memory_on_a_cpu(_: Trainer) -> None:
    """What torch says on a CPU, by asking it for too much."""
    torch.empty(1 << 48, dtype=torch.uint8)


def drift(trainer: Trainer) -> None:
    """A bit of memory that is no longer what it was."""
    with torch.no_grad():
        next(trainer.model.parameters()).view(-1)[0] += 1e-3


def go_mad(_: Trainer) -> None:
    """An error that nobody has thought of."""
    raise ValueError("this process has gone mad")


def unreachable_tracker() -> None:
    """Weights & Biases at an address where nobody listens."""
    os.environ.update(WANDB_MODE="online", WANDB_BASE_URL="http://127.0.0.1:9", WANDB_API_KEY="0" * 40)
    from nmt.runs import tracking  # noqa: PLC0415 - patched in the child alone

    tracking.WANDB_INIT_SECONDS = tracking.WANDB_FINISH_SECONDS = 3


def _wrap_file_calls(meet: Callable[[Callable[[], Any]], Any]) -> None:
    for name in FILE_CALLS:
        original = getattr(os, name)

        def wrapped(*words: Any, _original: Callable[..., Any] = original, **options: Any) -> Any:
            return meet(lambda: _original(*words, **options))

        setattr(os, name, wrapped)
