"""The faults that are tried: what is done to a command wherever it is, and the list of all."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import injuries
from aftermath import LostError, Outcome, Play, Trial, Verdict, aftermath, check_words
from damages import damages
from injuries import Injury
from troubles import of_pairs, of_training
from workshop import CHAIN, Workshop


def judge(shop: Workshop, trial: Trial, folder: Path) -> Outcome:
    """Try a fault on a fresh copy, which is kept where it was lost."""
    shop.copy(trial.stage, folder)
    try:
        outcome = trial.play(shop, folder)
    except LostError as lost:
        return Outcome(Verdict.LOST, str(lost))
    except Exception as error:  # a fault that nobody has thought of is one that was lost
        return Outcome(Verdict.LOST, repr(error))
    if outcome.verdict is not Verdict.LOST:
        for path in folder.parent.glob(f"{folder.name}*"):
            shutil.rmtree(path)
    return outcome


def plan(seed: int, shop: Workshop) -> list[Trial]:
    """All trials, the same for a seed (and the same number of file operations)."""
    rng = random.Random(seed)
    during = [trial for stage in CHAIN for trial in _during(rng, shop, stage)]
    return [*during, *damages(rng), *of_training(rng), *of_pairs(rng)]


def _during(rng: random.Random, shop: Workshop, stage: str) -> Iterator[Trial]:
    """Faults of a command, wherever it is."""
    weight = {"train": 3, "data": 2}.get(stage, 1)
    calls = shop.file_calls[stage]
    for number in _spread(rng, calls, 4 * weight):
        after = rng.random() < 0.5
        what = f"{'after' if after else 'before'} operation {number} of {calls}"
        yield _broken(
            "killed at a file operation", stage, what, injuries.at_file_call(number, injuries.kill, after=after)
        )
    for number in _spread(rng, calls, 2 + weight):
        yield _broken(
            "disk full", stage, f"operation {number}", injuries.at_file_call(number, injuries.disk_full, after=False)
        )
    for number in _spread(rng, calls, 1 + weight):
        yield _broken(
            "disk error", stage, f"operation {number}", injuries.at_file_call(number, injuries.disk_broken, after=False)
        )
    for size in (rng.randrange(1, 12_000) for _ in range(2 + weight)):
        yield _broken("killed within a write", stage, f"at byte {size}", injuries.largest_file(size, deadly=True))
    for size in (rng.randrange(1, 12_000) for _ in range(1 + weight)):
        yield _broken("file too large", stage, f"at byte {size}", injuries.largest_file(size, deadly=False))
    for size in (rng.randrange(40, 200) for _ in range(weight)):
        yield Trial("file system full", stage, f"{size} KiB", _full_file_system(stage, size))
    for kind, signals, count in (
        ("killed at any moment", [signal.SIGKILL], 1 + 2 * weight),
        ("SIGTERM", [signal.SIGTERM], 1 + weight),
        ("SIGINT", [signal.SIGINT], 1 + weight),
        ("SIGINT twice", [signal.SIGINT, signal.SIGINT], weight),
        ("SIGUSR1", [signal.SIGUSR1], 2 if stage == "train" else 0),
    ):
        for moment in (rng.uniform(0.05, 0.9) for _ in range(count)):
            yield Trial(kind, stage, f"at {moment:.0%} of its time", _signalled(stage, signals, moment))
    yield Trial("read-only folder", stage, "all of it", _read_only(stage))
    yield _broken("clock set back", stage, "by 400 days", injuries.clock_back)


def _spread(rng: random.Random, whole: int, parts: int) -> list[int]:
    """Numbers below a whole, one in each part of it."""
    return [min(whole - 1, int((part + rng.random()) * whole / parts)) for part in range(parts)]


def _broken(kind: str, stage: str, what: str, injury: Injury) -> Trial:
    def play(shop: Workshop, folder: Path) -> Outcome:
        check_words(shop.run(stage, folder, injury=injury))
        return aftermath(shop, folder, stage)

    return Trial(kind, stage, what, play)


def _signalled(stage: str, signals: Sequence[signal.Signals], moment: float) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        running = shop.start(stage, folder)
        time.sleep(moment * shop.seconds[stage])
        for number in signals:
            if running.poll() is None:
                os.kill(running.pid, number)
                time.sleep(0.05)
        check_words(running.wait())
        return aftermath(shop, folder, stage)

    return play


def _full_file_system(stage: str, size: int) -> Play:
    """A small file system of its own, where the system lets us have one; it grows afterwards."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        with _mounted(folder / ("data" if stage == "data" else "outputs"), size) as grow:
            check_words(shop.run(stage, folder))
            grow()
            return aftermath(shop, folder, stage)

    return play


@contextmanager
def _mounted(folder: Path, room: int) -> Iterator[Callable[[], None]]:
    """Put a file system with some KiB of room beside what is there; gives what makes it larger."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(folder.name + ".aside")
    shutil.copytree(folder, aside, symlinks=True)
    used = sum(-(-path.stat().st_size // 4096) * 4 + 4 for path in aside.rglob("*"))
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used + room}k", "tmpfs", folder], check=False)
    try:
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(aside)
        yield lambda: subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True) and None
    finally:
        if not made.returncode:
            subprocess.run(["umount", folder], check=False)


def _read_only(stage: str) -> Play:
    """Nothing in the folder can be written to: by mode, or for root, who is above modes, by mount."""

    def play(shop: Workshop, folder: Path) -> Outcome:
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
            done = shop.run(stage, folder)
        finally:
            for place in places:
                subprocess.run(["umount", place], check=True) if root else place.chmod(0o755)
        if not done.complaint:
            raise LostError(f"no clear line on a read-only folder: {done.last_line}")
        return aftermath(shop, folder, stage)

    return play
