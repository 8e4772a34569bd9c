"""What must come of a fault: words that a user can follow, and in the end the same files."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workshop import CHAIN, Done, Workshop

STOPPED, INTERRUPTED = 143, 130


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


def check_words(done: Done) -> None:
    """A command that met a fault may end as it must, but never with a traceback, nor in silence."""
    if "Traceback" in done.errors:
        raise LostError(f"a traceback: {done.last_line}")
    if done.code == 2 and not done.complaint:
        raise LostError(f"exit code 2 without one clear line: {done.errors}")
    if done.code not in (0, 2, STOPPED, INTERRUPTED) and done.code >= 0:
        raise LostError(f"exit code {done.code}: {done.last_line}")


def aftermath(shop: Workshop, folder: Path, stage: str, damaged: Path | None = None) -> Outcome:
    """Give the plain command, and where it refuses, do what it says."""
    done = shop.run(stage, folder)
    complaint = done.complaint
    if complaint:
        done = _mend(shop, folder, stage)
    if done.code or "Traceback" in done.errors:
        raise LostError(f"the plain command fails (exit code {done.code}): {done.last_line}")
    if damaged and "data" in damaged.relative_to(folder).parts and shop.run("data", folder).code:
        raise LostError("the data cannot be mended")
    if stage == "train":  # an interruption must not leave a checkpoint too many among those that are averaged
        stage = "average"
        if (done := shop.run(stage, folder)).code:
            raise LostError(f"the checkpoints cannot be averaged: {done.last_line}")
    outcome = check_same(shop, folder, stage)
    return Outcome(Verdict.REFUSED, complaint) if complaint else outcome


def check_same(shop: Workshop, folder: Path, stage: str) -> Outcome:
    """The files are those of a chain that nothing interrupted."""
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
