"""A toy language, and the command line run in a separate process."""

import io
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from nmt.cli import main

WORDS = {
    "the": "der", "old": "alte", "young": "junge", "man": "mann", "king": "koenig", "sees": "sieht",
    "finds": "findet", "a": "einen", "red": "roten", "green": "gruenen", "stone": "stein", "tree": "baum",
}  # fmt: skip


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Return sentence pairs of a tiny grammar whose target puts the verb last."""
    random = np.random.default_rng(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        subject = ["the", *random.choice(["old", "young", ""], 1), str(random.choice(["man", "king"]))]
        thing = ["a", *random.choice(["red", "green", ""], 1), str(random.choice(["stone", "tree"]))]
        verb = str(random.choice(["sees", "finds"]))
        mark = str(random.integers(10_000))
        source = [word for word in (*subject, verb, *thing) if word]
        target = [WORDS[word] for word in (*subject, *thing, verb) if word]
        found[f"{mark} {' '.join(source)}"] = f"{' '.join(target)} {mark}"
    return list(found.items())


def write_lines(path: Path, lines: Iterable[str]) -> str:
    """Write a file with these lines, and return its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def write_sides(stem: Path, found: Sequence[tuple[str, str]], languages: tuple[str, str] = ("en", "de")) -> list[str]:
    """Write a file per side, named after the languages; return both names."""
    sides = zip(languages, zip(*found, strict=True), strict=True)
    return [write_lines(stem.with_name(f"{stem.name}.{language}"), side) for language, side in sides]


def write_pairs(stem: Path, found: Sequence[tuple[str, str]], languages: tuple[str, str] = ("en", "de")) -> str:
    """Write a file per side; return both as a value of `data.train`."""
    return f"[{','.join(write_sides(stem, found, languages))}]"


def run(arguments: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run `nmt` in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "nmt", *arguments],
        capture_output=True, text=True, check=False, timeout=600, env=environment(), **options,  # type: ignore[call-overload]
    )  # fmt: skip
    assert isinstance(done, subprocess.CompletedProcess)
    return done


def call(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `nmt` in this process, which saves the time to start a new one."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def succeed(arguments: list[str]) -> str:
    """Run `nmt` in this process; return its output."""
    done = call(arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuse(arguments: list[str]) -> str:
    """Run `nmt` in this process with settings that it refuses; return the only line of its error."""
    done = call(arguments)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def environment() -> dict[str, str]:
    """Return an environment without a network and with few threads."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
