"""The faults that are tried: what is done to a command or to its files, and what must come of it."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import injuries
from injuries import Injury
from ranks import SHORT, run_pair
from workshop import CHAIN, SAVE_EVERY, STEPS, Done, Workshop

STOPPED, INTERRUPTED, KILLED = 143, 130, -signal.SIGKILL


class Verdict(StrEnum):
    """What became of a fault."""

    RECOVERED = "recovered"
    """The next plain command went on by itself, to the same result."""
    REFUSED = "refused"
    """It said in one line why not; doing what it said was enough, to the same result."""
    LOST = "lost"
    """Anything else."""


@dataclass(frozen=True)
class Outcome:
    """What became of a fault, and why."""

    verdict: Verdict
    note: str = ""


Play = Callable[[Workshop, Path], Outcome]


@dataclass(frozen=True)
class Trial:
    """One fault."""

    kind: str
    stage: str
    what: str
    play: Play


class LostError(Exception):
    """Something that must not happen."""


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
    return [*during, *_damages(rng), *_training(rng), *_pairs(rng)]


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
        _check_words(shop.run(stage, folder, injury=injury))
        return _aftermath(shop, folder, stage)

    return Trial(kind, stage, what, play)


def _signalled(stage: str, signals: Sequence[signal.Signals], moment: float) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        running = shop.start(stage, folder)
        time.sleep(moment * shop.seconds[stage])
        for number in signals:
            if running.poll() is None:
                os.kill(running.pid, number)
                time.sleep(0.05)
        _check_words(running.wait())
        return _aftermath(shop, folder, stage)

    return play


def _full_file_system(stage: str, size: int) -> Play:
    """A small file system of its own, where the system lets us have one; it grows afterwards."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        with _mounted(folder / ("data" if stage == "data" else "outputs"), size) as grow:
            _check_words(shop.run(stage, folder))
            grow()
            return _aftermath(shop, folder, stage)

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
        return _aftermath(shop, folder, stage)

    return play


DAMAGED = {
    "data": ("data/toy/train.en", "data/toy/train.en.tokens", "data/toy/valid.de.offsets", "data/toy/test.store.json",
             "data/toy/tokenizer.model", "data/toy/manifest.json"),
    "train": ("data/toy/train.en.tokens", "data/toy/train.de.offsets", "data/toy/valid.en.tokens", "data/toy/valid.de",
              "data/toy/train.store.json", "data/toy/tokenizer.model", "data/toy/manifest.json"),
    "resume": ("model.safetensors", "trainer.pt", "tokenizer.model", "config.yaml", "meta.json"),
    "average": ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json"),
    "eval": ("data/toy/test.en", "data/toy/test.de", "outputs/toy/checkpoints/averaged/model.safetensors",
             "outputs/toy/checkpoints/averaged/meta.json", "outputs/toy/checkpoints/averaged/tokenizer.model"),
    "export": ("outputs/toy/checkpoints/averaged/model.safetensors", "outputs/toy/checkpoints/averaged/config.yaml",
               "outputs/toy/checkpoints/averaged/tokenizer.model"),
}  # fmt: skip
"""Files of each stage; those of `resume` and `average` lie in the last checkpoint."""


def _damages(rng: random.Random) -> Iterator[Trial]:
    """Files that are no longer what was written."""
    for name, files in DAMAGED.items():
        stage = "train" if name == "resume" else name
        for file in files:
            for kind in ("truncated file", "flipped bit", "swapped file"):
                yield Trial(kind, stage, file, _damaged(name, stage, file, kind, rng.random()))


def _damaged(name: str, stage: str, file: str, kind: str, where: float) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        if stage == "data" and shop.run("data", folder).code:
            raise LostError("the data could not be prepared")
        if name == "resume":  # ended half way
            shop.run("train", folder, "training.steps=6")
        within = name in ("resume", "average")
        last = folder / "outputs/toy/checkpoints" / f"step-{6 if name == 'resume' else STEPS:08}"
        path = last / file if within else folder / file
        _harm(path, kind, where)
        return _aftermath(shop, folder, stage, path)

    return play


def _harm(path: Path, kind: str, where: float) -> None:
    content = bytearray(path.read_bytes())
    if kind == "truncated file":
        path.write_bytes(content[: int(where * len(content))])
    elif kind == "flipped bit":
        content[int(where * len(content))] ^= 1 << int(where * 1000) % 8
        path.write_bytes(content)
    else:
        other = _twin(path)
        content, theirs = bytes(content), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(content)


def _twin(path: Path) -> Path:
    """Another file that might be mistaken for a file."""
    same_kind = sorted(
        other
        for folder in (path.parent, *path.parent.parent.glob("step-*"))
        for other in folder.glob(f"*{path.suffix}")
        if other != path and other.is_file() and other.read_bytes() != path.read_bytes()
    )
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    return (same_kind or [other for other in others if other.name != ".lock"])[0]


def _training(rng: random.Random) -> Iterator[Trial]:
    """Faults that training alone can meet."""
    for step, act in ((1, injuries.no_memory), (1, injuries.no_memory_on_a_cpu), (8, injuries.no_memory),
                      (rng.randrange(2, STEPS), injuries.no_memory_on_a_cpu)):  # fmt: skip
        play = _told("train", injuries.at_step(step, act), "out of memory")
        yield Trial("out of memory", "train", f"at step {step}", play)
    for first in (4, 5, 7):
        play = _told("train", injuries.poison(range(first, 100)), f"in a row, from step {first} on")
        yield Trial("NaN for good", "train", f"from step {first}", play)
    for step in (2, rng.randrange(3, STEPS)):
        yield Trial("NaN in one step", "train", f"step {step}", _one_nan(step))
    yield Trial("W&B unreachable", "train", "nobody listens", _without_tracker)


def _told(stage: str, injury: Injury, words: str) -> Play:
    """The command must end with a line that says so; then all goes on."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        done = shop.run(stage, folder, injury=injury)
        if words not in done.complaint:
            raise LostError(f"{words!r} is not in its one line: {done.last_line}")
        return _aftermath(shop, folder, stage)

    return play


def _one_nan(step: int) -> Play:
    """A step is left out and named; interrupted or not, the rest is the same."""

    def play(shop: Workshop, folder: Path) -> Outcome:
        twin = shop.copy("train", folder.with_name(folder.name + ".twin"))
        done = shop.run("train", folder, injury=injuries.poison(range(step, step + 1)))
        if done.code or f"nothing was changed at step {step} " not in done.errors:
            raise LostError(f"step {step} is not named: {done.last_line}")
        shop.run("train", twin, f"training.steps={step}", injury=injuries.poison(range(step, step + 1)))
        shop.run("train", twin)
        if shop.compare(twin, "train", shop.products_of(folder)):
            raise LostError("interrupted after the bad step, it comes to another end")
        return Outcome(Verdict.RECOVERED)

    return play


def _without_tracker(shop: Workshop, folder: Path) -> Outcome:
    done = shop.run("train", folder, "tracking.wandb=online", injury=injuries.unreachable_tracker)
    if done.code or "Weights & Biases does not work" not in done.errors:
        raise LostError(f"exit code {done.code}: {done.last_line}")
    return _same(shop, folder, "train")


def _pairs(rng: random.Random) -> Iterator[Trial]:
    """Faults of one of two processes."""
    acts: dict[str, tuple[Callable[..., None], str]] = {
        "rank killed": (lambda _: injuries.kill(), "nmt: rank 0 stops, for another process has ended"),
        "rank hung": (lambda _: os.kill(os.getpid(), signal.SIGSTOP), "has not answered"),
        "rank with an error of its own": (injuries.go_mad, "nmt: rank 0 stops, for another process has ended"),
        "rank that drifts": (injuries.drift, "the weights of rank 1 are not those of rank 0"),
    }
    for kind, (act, words) in acts.items():
        for step in (rng.randrange(1, SAVE_EVERY + 1), rng.randrange(SAVE_EVERY + 1, STEPS)):
            yield Trial(kind, "train", f"at step {step}", _pair(words, injuries.at_step(step, act)))
    for setting in ("seed=7", "training.label_smoothing=0.2", "training.log_every=3"):
        yield Trial("rank with other settings", "train", setting, _pair("rank 1 has other settings", second=(setting,)))
    yield Trial("rank with other data", "train", "other text", _other_data)


def _pair(words: str, injury: Injury = injuries.nothing, second: tuple[str, ...] = ()) -> Play:
    def play(shop: Workshop, folder: Path) -> Outcome:
        first, _ = run_pair(shop, folder, SHORT, injury=injury, second=second)
        if words not in first.errors or "Traceback" in first.errors:
            raise LostError(f"rank 0 did not say {words!r}: {first.last_line} (exit code {first.code})")
        ended = run_pair(shop, folder)
        if any(each.code for each in ended):
            raise LostError(f"the plain command fails: {ended[0].last_line}")
        if faults := shop.compare(folder, "train", shop.products_of_pair):
            raise LostError("; ".join(faults))
        return Outcome(Verdict.RECOVERED)

    return play


def _other_data(shop: Workshop, folder: Path) -> Outcome:
    other = folder / "other"
    shutil.copytree(folder / "data", other)
    text = f"data.train=[{shop.folder}/text/other.en,{shop.folder}/text/other.de]"
    if shop.run("data", folder, f"paths.data={other}", text).code:
        raise LostError("the other data could not be prepared")
    return _pair("rank 1 has other files", second=(f"paths.data={other}",))(shop, folder)


def _check_words(done: Done) -> None:
    """A command that met a fault may end as it must, but never with a traceback, nor in silence."""
    if "Traceback" in done.errors:
        raise LostError(f"a traceback: {done.last_line}")
    if done.code == 2 and not done.complaint:
        raise LostError(f"exit code 2 without one clear line: {done.errors}")
    if done.code not in (0, 2, STOPPED, INTERRUPTED) and done.code >= 0:
        raise LostError(f"exit code {done.code}: {done.last_line}")


def _aftermath(shop: Workshop, folder: Path, stage: str, damaged: Path | None = None) -> Outcome:
    """Give the plain command, and where it refuses, do what it says."""
    done = shop.run(stage, folder)
    complaint = done.complaint
    if complaint:
        done = _mend(shop, folder, stage)
    if done.code or "Traceback" in done.errors:
        raise LostError(f"the plain command fails (exit code {done.code}): {done.last_line}")
    if damaged and "data" in damaged.relative_to(folder).parts and shop.run("data", folder).code:
        raise LostError("the data cannot be mended")
    outcome = _same(shop, folder, stage)
    return Outcome(Verdict.REFUSED, complaint) if complaint else outcome


def _same(shop: Workshop, folder: Path, stage: str) -> Outcome:
    if faults := shop.compare(folder, stage):
        raise LostError("; ".join(faults))
    return Outcome(Verdict.RECOVERED)


def _mend(shop: Workshop, folder: Path, stage: str) -> Done:
    """Run the stages before, and this one, anew; delete what they say is to be deleted."""
    done = Done(0, "", "", 0.0)
    for each in CHAIN[: CHAIN.index(stage) + 1]:
        for _ in range(3):
            done = shop.run(each, folder)
            if not done.code or not _delete_what_is_named(done.complaint):
                break
    return done


def _delete_what_is_named(complaint: str) -> bool:
    """Delete what a line says is to be deleted: what it names then, or what it begins with."""
    forms = (r"delete (/\S+)", r"(/\S+).*Delete it", r"checkpoints in (/\S+) are damaged.*delete that folder")
    named = next(filter(None, (re.search(form, complaint) for form in forms)), None)
    if not named:
        return False
    path = Path(named[1].rstrip(":,."))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True
