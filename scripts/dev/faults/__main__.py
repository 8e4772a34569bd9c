"""Inject seeded faults into every command of a small chain, repeat the command after each, and count the outcomes.

    .venv/bin/python scripts/dev/faults
    .venv/bin/python scripts/dev/faults --only "flipped bit" --command eval
    .venv/bin/python scripts/dev/faults --trials 12 --seed 3

The final files must equal those of an uninterrupted chain, bit for bit; no temporary file may remain, and no traceback
may appear. A fault that the command never met is listed, but not counted. Linux only.
"""

import errno
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from faults.sandbox import CHAIN, STEPS, FileCalls, Result, Sandbox
from shared.command_line import at_least, run_tool, tool_parser

RECOVERED, REFUSED, LOST, MISSED = "recovered", "refused", "lost", "missed"
"""Repeating the command made the same files; so did following its one line; anything else; the fault never arose."""
AT_FILE_CALLS: dict[str, Callable[[], None]] = {
    "killed at a file operation": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "disk full": lambda: _fail(errno.ENOSPC),
    "read-only disk": lambda: _fail(errno.EROFS),
}
WITHIN_WRITES = {"killed within a write": signal.SIG_DFL, "disk full within a write": signal.SIG_IGN}
"""What happens when a write exceeds the limit of the size of files."""
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
CORRUPTIONS = ("truncated file", "flipped bit")
TIMES = {"data": 2, "train": 3}
"""How often each of the faults above is injected into these commands; once into the others."""
SMALLEST_LIMIT, LARGEST_LIMIT = 1_000, 12_000
"""Bytes that files may have: enough for the output, which also goes to a file, and fewer than weights need."""
STOPPED, INTERRUPTED = 143, 130

HALFWAY, LAST_STEP = (f"outputs/toy/checkpoints/step-{step:08}" for step in (STEPS // 2, STEPS))
AVERAGED = "outputs/toy/checkpoints/averaged"
CHECKPOINT_FILES = ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json")
DATA_FILES = ("train.en.tokens", "train.de.offsets", "valid.de", "train.store.json", "tokenizer.model", "manifest.json")
CORRUPTED_FILES = {
    "data": [f"data/toy/{name}" for name in DATA_FILES],
    "train": [*(f"data/toy/{name}" for name in DATA_FILES), *(f"{HALFWAY}/{name}" for name in CHECKPOINT_FILES),
              f"{HALFWAY}/trainer.pt"],
    "average": [f"{LAST_STEP}/{name}" for name in CHECKPOINT_FILES],
    "eval": ["data/toy/test.en", "data/toy/test.de", *(f"{AVERAGED}/{name}" for name in CHECKPOINT_FILES)],
    "translate": [f"{AVERAGED}/model.safetensors"],
}  # fmt: skip
"""Files to corrupt before each command. `data` runs twice, and training ends halfway before its checkpoint changes."""
KINDS = (*AT_FILE_CALLS, *WITHIN_WRITES, *SIGNALS, *CORRUPTIONS)


class Trial(NamedTuple):
    """One fault to inject."""

    kind: str
    command: str
    place: float
    """The moment in the command, or the place in the file, as a part of the whole."""
    file: str = ""
    """The file to corrupt."""

    def __str__(self) -> str:
        return f"{self.kind}, {self.command}, {self.file or 'everywhere'}, at {self.place:.1%}"


class Outcome(NamedTuple):
    """What a fault led to, and why."""

    verdict: str
    note: str = ""


class LostError(Exception):
    """A fault had a forbidden consequence."""


def main() -> int:
    """Run the chosen trials and return 1 if any was lost."""
    global _sandbox  # noqa: PLW0603 - the forked workers have it from here
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments and places of the faults")
    parser.add_argument("--trials", type=at_least(1), help="run only this many trials, of as many kinds as possible")
    parser.add_argument("--only", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help="run only these kinds")
    parser.add_argument("--command", choices=CHAIN, help="run only faults of this command")
    parser.add_argument("--jobs", type=at_least(1), default=2, help="number of parallel trials")
    parser.add_argument("--folder", help="parent of the working folder (some megabytes)")
    arguments = parser.parse_args()
    folder, started = Path(tempfile.mkdtemp(prefix="faults-", dir=arguments.folder)), time.monotonic()
    commands = [arguments.command] if arguments.command else CHAIN
    planned = plan(random.Random(arguments.seed))
    trials = [each for each in planned if each.kind in arguments.only and each.command in commands][: arguments.trials]
    print(f"{len(trials):,} faults, seed {arguments.seed}, in {folder}", flush=True)
    _sandbox = Sandbox(folder)
    outcomes = []
    with ProcessPoolExecutor(arguments.jobs, get_context("fork")) as pool:
        for trial, outcome in zip(trials, pool.map(judge, trials, range(len(trials))), strict=True):
            print(f"{outcome.verdict:10} {trial}  {outcome.note[:300]}", flush=True)
            outcomes.append((trial.kind, outcome.verdict))
    print("", *table(outcomes), f"{len(trials):,} faults in {time.monotonic() - started:,.0f} s", sep="\n")
    if any(verdict == LOST for _, verdict in outcomes):
        return 1
    shutil.rmtree(folder)
    return 0


def plan(rng: random.Random) -> list[Trial]:
    """Return all trials of a seed: first one of each kind, then a second of each, and so on."""
    during = [kind for kind in KINDS if kind not in CORRUPTIONS]
    moments = [(kind, command) for command in CHAIN for kind in during for _ in range(TIMES.get(command, 1))]
    trials = [Trial(kind, command, rng.random()) for kind, command in moments]
    files = [(command, file) for command, files in CORRUPTED_FILES.items() for file in files]
    trials += [Trial(kind, command, rng.random(), file) for command, file in files for kind in CORRUPTIONS]
    rng.shuffle(trials)
    seen: Counter[str] = Counter()
    turns = []
    for trial in trials:
        seen[trial.kind] += 1
        turns.append(seen[trial.kind])
    return [trials[index] for index in sorted(range(len(trials)), key=turns.__getitem__)]


_sandbox: Sandbox


def judge(trial: Trial, number: int) -> Outcome:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost."""
    folder = _sandbox.folder / f"trial-{number}"
    _sandbox.copy(trial.command, folder)
    try:
        done = _with_fault(trial, folder)
        may_miss = trial.kind in SIGNALS or trial.kind in WITHIN_WRITES
        if done and may_miss and not done.code and os.strerror(errno.EFBIG) not in done.output:
            outcome = Outcome(MISSED, "the command succeeded")
        else:
            if done:
                _check_message(done)
            outcome = _recover(folder, trial.command, trial.file)
    except Exception as error:  # also an unexpected one means that the fault was not handled
        return Outcome(LOST, str(error) or repr(error))
    shutil.rmtree(folder)
    return outcome


def _with_fault(trial: Trial, folder: Path) -> Result | None:
    """Run a command that meets a fault and return its result, or corrupt a file before it runs."""
    command = trial.command
    if trial.kind in CORRUPTIONS:
        if command == "data":
            _sandbox.run("data", folder)
        elif HALFWAY in trial.file:
            _sandbox.run("train", folder, f"training.steps={STEPS // 2}")
        _corrupt(folder / trial.file, trial.kind, trial.place)
        return None
    if trial.kind in AT_FILE_CALLS:
        number = int(trial.place * _sandbox.file_calls[command])
        return _sandbox.run(command, folder, injection=lambda: FileCalls().inject(number, AT_FILE_CALLS[trial.kind]))
    if trial.kind in WITHIN_WRITES:
        return _sandbox.run(command, folder, injection=lambda: _limit_files(trial))
    pid = _sandbox.start(command, folder)
    time.sleep(trial.place * _sandbox.seconds[command])
    os.kill(pid, SIGNALS[trial.kind])
    return _sandbox.wait(pid, folder)


def _fail(code: int) -> None:
    raise OSError(code, os.strerror(code))


def _limit_files(trial: Trial) -> None:
    """Limit the size of files, so that a longer write fails, or kills the process in the middle."""
    size = SMALLEST_LIMIT + int(trial.place * (LARGEST_LIMIT - SMALLEST_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, WITHIN_WRITES[trial.kind])


def _corrupt(path: Path, kind: str, place: float) -> None:
    content = bytearray(path.read_bytes())
    position = int(place * len(content))
    if kind == "truncated file":
        del content[position:]
    else:
        content[position] ^= 1 << int(place * 1000) % 8
    path.write_bytes(content)


def _check_message(done: Result) -> None:
    """Make sure that a command that met a fault printed no traceback, and did not fail without a message."""
    if "Traceback" in done.output or (done.code == 2 and not done.complaint):
        raise LostError(f"exit code {done.code} without one clear line: {done.output}")
    if done.code not in (0, 2, STOPPED, INTERRUPTED) and done.code >= 0:
        raise LostError(f"exit code {done.code}: {done.last_line}")


def _recover(folder: Path, command: str, corrupted: str) -> Outcome:
    """Repeat the command without the fault; if it refuses, do what its message asks for. Compare the files."""
    done = _sandbox.run(command, folder)
    complaint = done.complaint
    if complaint:
        done = _repair(folder, command)
    if done.code or "Traceback" in done.output:
        raise LostError(f"the plain command fails (exit code {done.code}): {done.last_line}")
    if corrupted.startswith("data/") and _sandbox.run("data", folder).code:
        raise LostError("the data cannot be repaired")
    if command == "train":  # an interruption must not add a checkpoint to those that are averaged
        command = "average"
        if (done := _sandbox.run(command, folder)).code:
            raise LostError(f"the checkpoints cannot be averaged: {done.last_line}")
    if faults := _sandbox.differences(folder, command):
        raise LostError("; ".join(faults))
    return Outcome(REFUSED, complaint) if complaint else Outcome(RECOVERED)


def _repair(folder: Path, command: str) -> Result:
    """Run the commands up to this one again, and delete what their messages ask to delete."""
    done = Result(0, "")
    for each in CHAIN[: CHAIN.index(command) + 1]:
        done = _sandbox.run(each, folder)
        while done.code and _delete_as_asked(done.complaint):
            done = _sandbox.run(each, folder)
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


def table(outcomes: list[tuple[str, str]]) -> list[str]:
    """Return a table with one row per kind of fault, and one of all."""
    verdicts = (RECOVERED, REFUSED, LOST, MISSED)
    counts = Counter(outcomes) + Counter(("all", verdict) for _, verdict in outcomes)
    kinds = [kind for kind in (*KINDS, "all") if any(counts[kind, verdict] for verdict in verdicts)]
    rows = [("fault", *verdicts), *((kind, *(counts[kind, verdict] for verdict in verdicts)) for kind in kinds)]
    return [f"{row[0]:<28}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows]


if __name__ == "__main__":
    run_tool(main, __file__)
