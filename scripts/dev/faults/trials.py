"""List all trials, define those that apply to every command, and run one."""

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path

from faults import injections
from faults.corruption import corruptions
from faults.injections import Injection
from faults.recovery import (
    LostError,
    NeverInjectedError,
    Outcome,
    Trial,
    TrialFunction,
    Verdict,
    check_messages,
    recover,
)
from faults.sandbox import CHAIN, Result, Sandbox
from faults.training_faults import faults_of_pairs, faults_of_training

MESSAGE_BYTES = 500
"""Enough for the message of an error, which also goes to a file."""


def judge(sandbox: Sandbox, trial: Trial, folder: Path) -> Outcome:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost."""
    sandbox.copy(trial.command, folder)
    try:
        outcome = trial.run_trial(sandbox, folder)
    except NeverInjectedError as reason:
        outcome = Outcome(Verdict.MISSED, str(reason))
    except LostError as lost:
        return Outcome(Verdict.LOST, str(lost))
    except Exception as error:  # an unexpected error means that the fault was not handled
        return Outcome(Verdict.LOST, repr(error))
    if outcome.verdict is not Verdict.LOST:
        for path in folder.parent.glob(f"{folder.name}*"):
            shutil.rmtree(path)
    return outcome


def plan(seeds: range, file_calls: Mapping[str, int], written: Mapping[str, Sequence[int]]) -> list[Trial]:
    """Return the trials of these seeds, without repetitions.

    They depend only on the seed and, per command, on the number of file operations and the sizes of the written files.
    """
    trials = [trial for seed in seeds for trial in _plan(random.Random(seed), file_calls, written)]
    return list({(trial.kind, trial.command, trial.what): trial for trial in trials}.values())


def _plan(rng: random.Random, file_calls: Mapping[str, int], written: Mapping[str, Sequence[int]]) -> list[Trial]:
    during = [
        trial for command in CHAIN for trial in _faults_during(rng, command, file_calls[command], written[command])
    ]
    return [*during, *corruptions(rng), *faults_of_training(rng), *faults_of_pairs(rng)]


def _faults_during(rng: random.Random, command: str, calls: int, written: Sequence[int]) -> Iterator[Trial]:
    """Yield faults at random moments of a command."""
    weight = {"train": 3, "data": 2}.get(command, 1)
    yield from _faults_of_writing(rng, command, weight, calls, written)
    yield from _signals(rng, command, weight)
    yield Trial("read-only folder", command, "all folders", _read_only(command))
    yield Trial("clock set back", command, "by 400 days", _broken(command, injections.clock_back, lambda _: True))


def _faults_of_writing(
    rng: random.Random, command: str, weight: int, calls: int, written: Sequence[int]
) -> Iterator[Trial]:
    for number in _spread(rng, calls, 4 * weight):
        after = rng.random() < 0.5
        what = f"{'after' if after else 'before'} operation {number} of {calls}"
        yield Trial("killed at a file operation", command, what, _at_operation(command, number, injections.kill, after))
    for number in _spread(rng, calls, 2 + weight):
        run_trial = _at_operation(command, number, injections.disk_full)
        yield Trial("disk full", command, f"operation {number}", run_trial)
    for number in _spread(rng, calls, 1 + weight):
        run_trial = _at_operation(command, number, injections.disk_broken)
        yield Trial("disk error", command, f"operation {number}", run_trial)
    largest = min(12_000, written[-1])
    for size in (rng.randrange(1, largest) for _ in range(2 + weight)):
        run_trial = _broken(command, injections.largest_file(size, deadly=True), _failed)
        yield Trial("killed within a write", command, f"at byte {size}", run_trial)
    for size in (rng.randrange(MESSAGE_BYTES, largest) for _ in range(1 + weight)):
        run_trial = _broken(command, injections.largest_file(size, deadly=False), _says(errno.EFBIG))
        yield Trial("file too large", command, f"at byte {size}", run_trial)
    for size in (int(rng.uniform(0.1, 0.9) * sum(written)) >> 10 for _ in range(weight)):
        yield Trial("file system full", command, f"{size} KiB", _full_file_system(command, size))


def _signals(rng: random.Random, command: str, weight: int) -> Iterator[Trial]:
    for kind, signals, count in (
        ("killed at any moment", [signal.SIGKILL], 1 + 2 * weight),
        ("SIGTERM", [signal.SIGTERM], 1 + weight),
        ("SIGINT", [signal.SIGINT], 1 + weight),
        ("SIGINT twice", [signal.SIGINT, signal.SIGINT], weight),
        ("SIGUSR1", [signal.SIGUSR1], 2 if command == "train" else 0),
    ):
        for moment in (rng.uniform(0.05, 0.9) for _ in range(count)):
            yield Trial(kind, command, f"at {moment:.1%} of its time", _signalled(command, signals, moment))


def _spread(rng: random.Random, total: int, count: int) -> list[int]:
    """Return random numbers below a total, one from each of `count` equal intervals."""
    return [min(total - 1, int((interval + rng.random()) * total / count)) for interval in range(count)]


def _broken(command: str, injection: Injection, met: Callable[[Result], bool]) -> TrialFunction:
    """Run the command with a fault, make sure that it met the fault, and repeat it."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        done = sandbox.run(command, folder, injection=injection)
        _check_injected(done, met)
        check_messages(done)
        return recover(sandbox, folder, command)

    return run_trial


def _at_operation(command: str, number: int, act: Callable[[], None], after: bool = False) -> TrialFunction:
    flag = mmap(-1, 1)  # memory that is shared with the command
    return _broken(command, injections.at_file_call(number, act, after=after, met=flag), lambda _: flag[0] == 1)


def _failed(done: Result) -> bool:
    return done.code != 0


def _says(code: int) -> Callable[[Result], bool]:
    """Return a function that tells whether a command failed, or went on and mentioned this error of the system."""
    return lambda done: _failed(done) or os.strerror(code) in done.errors


def _check_injected(done: Result, met: Callable[[Result], bool]) -> None:
    if not met(done):
        raise NeverInjectedError(f"the command ended with exit code {done.code} before the fault")


def _signalled(command: str, signals: Sequence[signal.Signals], moment: float) -> TrialFunction:
    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        running = sandbox.start(command, folder)
        time.sleep(moment * sandbox.seconds[command])
        for number in signals:
            if running.poll() is None:
                os.kill(running.pid, number)
                time.sleep(0.05)
        done = running.wait()
        _check_injected(done, _failed)
        check_messages(done)
        return recover(sandbox, folder, command)

    return run_trial


def _full_file_system(command: str, size: int) -> TrialFunction:
    """Run the command on a file system that is too small, which then grows."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        with _mounted(folder / ("data" if command == "data" else "outputs"), size) as grow:
            done = sandbox.run(command, folder)
            _check_injected(done, _says(errno.ENOSPC))
            check_messages(done)
            grow()
            return recover(sandbox, folder, command)

    return run_trial


@contextmanager
def _mounted(folder: Path, free_kib: int) -> Iterator[Callable[[], object]]:
    """Mount a file system with a few free KiB over a folder with its contents; yield a function that enlarges it."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder.with_name(folder.name + ".copy")
    shutil.copytree(folder, copy, symlinks=True)
    files = (path for path in copy.rglob("*") if path.is_file() and not path.is_symlink())
    used = sum(-(-path.stat().st_size // 4096) * 4 for path in files)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used + free_kib}k", "tmpfs", folder], check=False)
    try:
        shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(copy)
        yield lambda: subprocess.check_call(["mount", "-o", "remount,size=64m", folder])
    finally:
        if not made.returncode:
            subprocess.run(["umount", folder], check=False)


def _read_only(command: str) -> TrialFunction:
    """Make the folders read-only: by their mode, or, for root, who ignores modes, by a mount."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        places = [folder / name for name in ("data", "outputs")]
        for place in places:
            place.mkdir(exist_ok=True)
        root = os.getuid() == 0
        for place in places:
            if root:
                subprocess.run(["mount", "--bind", place, place], check=True)
                subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
            else:
                place.chmod(0o555)
        try:
            done = sandbox.run(command, folder)
        finally:
            for place in places:
                subprocess.run(["umount", place], check=True) if root else place.chmod(0o755)
        if not done.complaint:
            raise LostError(f"no clear line on a read-only folder: {done.last_line}")
        return recover(sandbox, folder, command)

    return run_trial
