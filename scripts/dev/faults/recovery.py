"""Recover from a fault like a user, and check the messages and the final files."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from faults.sandbox import CHAIN, Result, Sandbox

STOPPED, INTERRUPTED = 143, 130


class Verdict(StrEnum):
    """Result of a trial."""

    RECOVERED = "recovered"
    """Repeating the command reached the same result."""
    REFUSED = "refused"
    """The command refused with one clear line; following it reached the same result."""
    LOST = "lost"
    """Any other result."""
    MISSED = "never injected"
    """The command never met the fault, so the trial says nothing."""


@dataclass(frozen=True)
class Outcome:
    """Verdict on a trial, and its reason."""

    verdict: Verdict
    note: str = ""


TrialFunction = Callable[[Sandbox, Path], Outcome]


@dataclass(frozen=True)
class Trial:
    """One fault to inject."""

    kind: str
    command: str
    what: str
    run_trial: TrialFunction


class LostError(Exception):
    """A fault had a forbidden consequence."""


class NeverInjectedError(Exception):
    """A command never met the fault."""


def check_messages(done: Result) -> None:
    """Make sure that a command that met a fault did not print a traceback or fail without a message."""
    if "Traceback" in done.errors:
        raise LostError(f"a traceback: {done.last_line}")
    if done.code == 2 and not done.complaint:
        raise LostError(f"exit code 2 without one clear line: {done.errors}")
    if done.code not in (0, 2, STOPPED, INTERRUPTED) and done.code >= 0:
        raise LostError(f"exit code {done.code}: {done.last_line}")


def recover(sandbox: Sandbox, folder: Path, command: str, damaged: Path | None = None) -> Outcome:
    """Repeat the command without the fault; if it refuses, do what its message asks for."""
    done = sandbox.run(command, folder)
    complaint = done.complaint
    if complaint:
        done = _repair(sandbox, folder, command)
    if done.code or "Traceback" in done.errors:
        raise LostError(f"the plain command fails (exit code {done.code}): {done.last_line}")
    if damaged and "data" in damaged.relative_to(folder).parts and sandbox.run("data", folder).code:
        raise LostError("the data cannot be repaired")
    if command == "train":  # an interruption must not add a checkpoint to those that are averaged
        command = "average"
        if (done := sandbox.run(command, folder)).code:
            raise LostError(f"the checkpoints cannot be averaged: {done.last_line}")
    outcome = check_same(sandbox, folder, command)
    return Outcome(Verdict.REFUSED, complaint) if complaint else outcome


def check_same(sandbox: Sandbox, folder: Path, command: str) -> Outcome:
    """Make sure that the files equal those of an uninterrupted chain."""
    if faults := sandbox.compare(folder, command):
        raise LostError("; ".join(faults))
    return Outcome(Verdict.RECOVERED)


def _repair(sandbox: Sandbox, folder: Path, command: str) -> Result:
    """Run the commands up to this one again, and delete what their messages ask to delete."""
    done = Result(0, "", "", 0.0)
    for each in CHAIN[: CHAIN.index(command) + 1]:
        for _ in range(3):
            done = sandbox.run(each, folder)
            if not done.code or not _delete_as_asked(done.complaint):
                break
    return done


def _delete_as_asked(complaint: str) -> bool:
    """Delete the file or folder that a message asks to delete, and return whether there was one."""
    forms = (r"delete (/\S+)", r"(/\S+).*Delete it", r"checkpoints in (/\S+) are damaged.*delete that folder")
    named = next(filter(None, (re.search(form, complaint) for form in forms)), None)
    if not named:
        return False
    path = Path(named[1].rstrip(":,."))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True
