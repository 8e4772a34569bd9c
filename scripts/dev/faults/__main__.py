"""Inject seeded faults into every command of a small chain, repeat the command after each, and count the outcomes.

    .venv/bin/python scripts/dev/faults
    .venv/bin/python scripts/dev/faults --only "flipped bit"

The final files must equal those of an uninterrupted chain, bit for bit; no temporary file may remain, and no traceback
may appear. A command that refuses must say in one line what to do, and it is done. A fault that the command never met
is listed, but not counted. Linux only.
"""

import argparse
import errno
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package
from faults.sandbox import CHAIN, FULL, FULL_WRITING, KILLED, SIGNALS, STEPS, Sandbox, products
from nmt.storage.files import PARTIAL

FLIPPED = "flipped bit"
KINDS = (KILLED, FULL, FULL_WRITING, *SIGNALS, FLIPPED)
WEIGHTS = ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json")
CORRUPTED = {
    "train": ("data/toy/train.en.tokens", "data/toy/train.de.offsets", "data/toy/train.store.json",
              "data/toy/tokenizer.model", "data/toy/manifest.json", "data/toy/valid.de"),
    "average": tuple(f"outputs/toy/checkpoints/step-{STEPS:08}/{name}" for name in WEIGHTS),
    "eval": ("data/toy/test.en", *(f"outputs/toy/checkpoints/averaged/{name}" for name in WEIGHTS)),
}  # fmt: skip
"""Files that may be damaged before a command."""
EXIT_CODES = (0, 2, 130, 143, -signal.SIGKILL, -signal.SIGTERM)
"""How a command may end after a fault; it ends with SIGALRM if it hangs."""
RECOVERED, REFUSED, LOST, MISSED = VERDICTS = ("recovered", "refused", "lost", "missed")
"""Repeating the command made the same files; so did following its one line; anything else; the fault never arose."""


class Trial(NamedTuple):
    """One fault to inject, at a moment of a command or at a place in a file, as a part of the whole."""

    number: int
    kind: str
    command: str
    place: float
    file: str = ""


def main() -> int:
    """Run the trials and return 1 if any was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments and places of the faults")
    parser.add_argument("--trials", type=int, default=130)
    parser.add_argument("--only", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help="run only these kinds")
    options = parser.parse_args()
    folder, draws, trials = Path(tempfile.mkdtemp(prefix="faults-")), random.Random(options.seed), []
    for number in range(options.trials):
        kind = options.only[number % len(options.only)]
        command = draws.choice(list(CORRUPTED) if kind == FLIPPED else CHAIN)
        file = draws.choice(CORRUPTED[command]) if kind == FLIPPED else ""
        trials.append(Trial(number, kind, command, draws.random(), file))
    print(f"{len(trials):,} faults, seed {options.seed}, in {folder}", flush=True)
    sandbox, counts = Sandbox(folder), Counter[tuple[str, str]]()
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        for trial, (verdict, note) in zip(trials, pool.map(partial(judge, sandbox), trials), strict=True):
            place = f"{trial.kind}, {trial.command}, {trial.file or 'everywhere'}, at {trial.place:.1%}"
            print(f"{verdict:10} {place}  {note[:300]}", flush=True)
            counts.update([(trial.kind, verdict), ("all", verdict)])
    for kind in (*KINDS, "all"):
        print(f"{kind:<30}" + "".join(f"{counts[kind, verdict]:>5} {verdict}" for verdict in VERDICTS))
    if not counts["all", LOST]:
        shutil.rmtree(folder)
    return int(bool(counts["all", LOST]))


def judge(sandbox: Sandbox, trial: Trial) -> tuple[str, str]:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost; return the verdict and why."""
    folder = sandbox.folder / f"trial-{trial.number}"
    shutil.copytree(sandbox.states[CHAIN.index(trial.command)], folder, symlinks=True)
    try:
        outcome = _outcome(sandbox, trial, folder)
    except Exception as error:  # also an unexpected one means that the fault was not handled
        return LOST, str(error) or repr(error)
    shutil.rmtree(folder)
    return outcome


def _outcome(sandbox: Sandbox, trial: Trial, folder: Path) -> tuple[str, str]:
    """Inject the fault, then repeat the command without it; if it refuses, do what it asks for. Compare the files."""
    if trial.file:
        content = bytearray((folder / trial.file).read_bytes())
        content[int(trial.place * len(content))] ^= 1 << trial.number % 8
        (folder / trial.file).write_bytes(content)
    else:
        done = sandbox.run(trial.command, folder, trial.kind, trial.place)
        if not done.code and os.strerror(errno.EFBIG) not in done.output and trial.kind not in (KILLED, FULL):
            return MISSED, "the command succeeded"
        assert "Traceback" not in done.output, f"traceback: {done.output}"
        assert done.code != 2 or done.complaint, f"exit code 2 without one clear line: {done.output}"
        assert done.code in EXIT_CODES, f"exit code {done.code}: {done.output[-300:]}"
    commands = CHAIN[: CHAIN.index(trial.command) + 1]
    done = sandbox.run(trial.command, folder)
    if complaint := done.complaint:
        for each in commands:
            done = sandbox.run(each, folder)
            while done.code and _delete_as_asked(done.complaint):
                done = sandbox.run(each, folder)
    assert not done.code, f"the plain command fails: {done.output[-300:]}"
    if trial.file.startswith("data/"):
        assert not sandbox.run("data", folder).code, "the data cannot be repaired"
    if trial.command == "train":  # an interruption must not add a checkpoint to those that are averaged
        commands += ("average",)
        assert not sandbox.run("average", folder).code, "the checkpoints cannot be averaged"
    for each in commands:
        here, expected = products(folder, each), products(sandbox.states[-1], each)
        wrong = [name for name, content in expected.items() if here.get(name) != content]
        assert not wrong, f"{', '.join(wrong)} differ"
    left = [str(path.relative_to(folder)) for path in folder.rglob(f"*{PARTIAL}*")]
    assert not left, f"leftovers: {', '.join(left)}"
    return (REFUSED, complaint) if complaint else (RECOVERED, "")


def _delete_as_asked(complaint: str) -> bool:
    """Delete the file or folder that a message asks to delete, and return whether there was one."""
    named = re.search(r"delete (/\S+)|(/\S+).*(?:Delete it|are damaged.*delete that folder)", complaint)
    if not named:
        return False
    path = Path((named[1] or named[2]).rstrip(":,."))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True


if __name__ == "__main__":
    sys.exit(main())
