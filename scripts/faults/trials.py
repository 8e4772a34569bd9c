"""List all trials, define those that apply to every command, and run one."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import injections
from corruption import corruptions
from injections import Injection
from recovery import LostError, Outcome, Trial, TrialFunction, Verdict, check_messages, recover
from sandbox import CHAIN, Sandbox
from server_faults import faults_of_server
from training_faults import faults_of_pairs, faults_of_training


def judge(sandbox: Sandbox, trial: Trial, folder: Path) -> Outcome:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost."""
    sandbox.copy(trial.command, folder)
    try:
        outcome = trial.run_trial(sandbox, folder)
    except LostError as lost:
        return Outcome(Verdict.LOST, str(lost))
    except Exception as error:  # an unexpected error means that the fault was not handled
        return Outcome(Verdict.LOST, repr(error))
    if outcome.verdict is not Verdict.LOST:
        for path in folder.parent.glob(f"{folder.name}*"):
            shutil.rmtree(path)
    return outcome


def plan(seed: int, sandbox: Sandbox) -> list[Trial]:
    """Return all trials, which depend only on the seed and the number of file operations."""
    rng = random.Random(seed)
    during = [trial for command in CHAIN for trial in _faults_during(rng, sandbox, command)]
    return [*during, *corruptions(rng), *faults_of_training(rng), *faults_of_pairs(rng), *faults_of_server(rng)]


def _faults_during(rng: random.Random, sandbox: Sandbox, command: str) -> Iterator[Trial]:
    """Yield faults at random moments of a command."""
    weight = {"train": 3, "data": 2}.get(command, 1)
    calls = sandbox.file_calls[command]
    for number in _spread(rng, calls, 4 * weight):
        after = rng.random() < 0.5
        what = f"{'after' if after else 'before'} operation {number} of {calls}"
        yield _broken(
            "killed at a file operation", command, what, injections.at_file_call(number, injections.kill, after=after)
        )
    for number in _spread(rng, calls, 2 + weight):
        yield _broken(
            "disk full",
            command,
            f"operation {number}",
            injections.at_file_call(number, injections.disk_full, after=False),
        )
    for number in _spread(rng, calls, 1 + weight):
        yield _broken(
            "disk error",
            command,
            f"operation {number}",
            injections.at_file_call(number, injections.disk_broken, after=False),
        )
    for size in (rng.randrange(1, 12_000) for _ in range(2 + weight)):
        yield _broken("killed within a write", command, f"at byte {size}", injections.largest_file(size, deadly=True))
    for size in (rng.randrange(1, 12_000) for _ in range(1 + weight)):
        yield _broken("file too large", command, f"at byte {size}", injections.largest_file(size, deadly=False))
    for size in (rng.randrange(40, 200) for _ in range(weight)):
        yield Trial("file system full", command, f"{size} KiB", _full_file_system(command, size))
    for kind, signals, count in (
        ("killed at any moment", [signal.SIGKILL], 1 + 2 * weight),
        ("SIGTERM", [signal.SIGTERM], 1 + weight),
        ("SIGINT", [signal.SIGINT], 1 + weight),
        ("SIGINT twice", [signal.SIGINT, signal.SIGINT], weight),
        ("SIGUSR1", [signal.SIGUSR1], 2 if command == "train" else 0),
    ):
        for moment in (rng.uniform(0.05, 0.9) for _ in range(count)):
            yield Trial(kind, command, f"at {moment:.0%} of its time", _signalled(command, signals, moment))
    yield Trial("read-only folder", command, "all folders", _read_only(command))
    yield _broken("clock set back", command, "by 400 days", injections.clock_back)


def _spread(rng: random.Random, total: int, count: int) -> list[int]:
    """Return random numbers below a total, one from each of `count` equal intervals."""
    return [min(total - 1, int((interval + rng.random()) * total / count)) for interval in range(count)]


def _broken(kind: str, command: str, what: str, injection: Injection) -> Trial:
    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        check_messages(sandbox.run(command, folder, injection=injection))
        return recover(sandbox, folder, command)

    return Trial(kind, command, what, run_trial)


def _signalled(command: str, signals: Sequence[signal.Signals], moment: float) -> TrialFunction:
    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        running = sandbox.start(command, folder)
        time.sleep(moment * sandbox.seconds[command])
        for number in signals:
            if running.poll() is None:
                os.kill(running.pid, number)
                time.sleep(0.05)
        check_messages(running.wait())
        return recover(sandbox, folder, command)

    return run_trial


def _full_file_system(command: str, size: int) -> TrialFunction:
    """Run the command on a file system that is too small, which then grows."""

    def run_trial(sandbox: Sandbox, folder: Path) -> Outcome:
        with _mounted(folder / ("data" if command == "data" else "outputs"), size) as grow:
            check_messages(sandbox.run(command, folder))
            grow()
            return recover(sandbox, folder, command)

    return run_trial


@contextmanager
def _mounted(folder: Path, free_kib: int) -> Iterator[Callable[[], None]]:
    """Mount a file system with a few free KiB over a folder with its contents; yield a function that enlarges it."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder.with_name(folder.name + ".copy")
    shutil.copytree(folder, copy, symlinks=True)
    used = sum(-(-path.stat().st_size // 4096) * 4 + 4 for path in copy.rglob("*"))
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used + free_kib}k", "tmpfs", folder], check=False)
    try:
        shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(copy)
        yield lambda: subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True) and None
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
