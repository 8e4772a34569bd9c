"""Inject seeded faults into every command of a small chain, repeat the command after each, and count the outcomes.

    .venv/bin/python scripts/dev/faults
    .venv/bin/python scripts/dev/faults --trials 300 --seed 3
    .venv/bin/python scripts/dev/faults --only "flipped bit"

The final files must equal those of an uninterrupted chain, bit for bit; no temporary file may remain, and no traceback
may appear. A command that refuses must say in one line what to do, and it is done. A fault that the command never met
is listed, but not counted. Linux only.
"""

import argparse
import errno
import json
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
from contextlib import suppress
from importlib import import_module
from mmap import mmap
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from nmt.cli import main as nmt
from nmt.commands import COMMANDS
from nmt.config.compose import compose
from nmt.storage.files import PARTIAL

CHAIN = ("data", "train", "average", "eval", "translate", "synthesize")
STEPS = 12
HANG_SECONDS = 900
"""Seconds after which a command counts as hung; on a shared machine, commands of seconds may take minutes."""
SETTINGS = (
    "data=files", "data.corpus=toy", "data.max_pieces=40", "tokenizer.vocab_size=80", "name=toy",
    "model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.1",
    f"training.steps={STEPS}", "training.batch_tokens=200", "training.warmup_steps=4", "training.learning_rate=5e-3",
    "training.save_every=3", "training.valid_every=6", "training.valid_sentences=2", "training.log_every=1",
    "training.keep_last=3", "averaging.last=2", "decoding.beam=2", "decoding.extra_length=5",
    "runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32",
)  # fmt: skip
OWN_SETTINGS = {
    "translate": ("input={text}/valid.en", "output={folder}/outputs/translated.txt"),
    "synthesize": ("input={text}/train.en", "synthesize.shard_lines=80", "output={folder}/outputs/made"),
}
PRODUCTS = {
    "data": ("data/toy/*.tokens", "data/toy/*.offsets", "data/toy/*.model", "data/toy/*.en", "data/toy/*.de"),
    "train": (f"outputs/toy/checkpoints/step-{STEPS:08}/*model*", "outputs/toy/metrics.jsonl"),
    "average": ("outputs/toy/checkpoints/averaged/model.safetensors",),
    "eval": ("outputs/toy/eval/test.hyp.txt",),
    "translate": ("outputs/translated.txt",),
    "synthesize": ("outputs/made/train-*",),
}
"""The files of each command that must be the same bit for bit; of metrics.jsonl, which has times, the losses."""
WEIGHTS = ("model.safetensors", "tokenizer.model", "config.yaml", "meta.json")
CORRUPTED = {
    "train": ("data/toy/train.en.tokens", "data/toy/train.de.offsets", "data/toy/train.store.json",
              "data/toy/tokenizer.model", "data/toy/manifest.json", "data/toy/valid.de"),
    "average": tuple(f"outputs/toy/checkpoints/step-{STEPS:08}/{name}" for name in WEIGHTS),
    "eval": ("data/toy/test.en", *(f"outputs/toy/checkpoints/averaged/{name}" for name in WEIGHTS)),
    "translate": ("outputs/toy/checkpoints/averaged/model.safetensors",),
}  # fmt: skip
"""Files that may be damaged before a command."""
FILE_CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir", "symlink")
"""Functions of `os` through which every complete file or folder is written."""
KILLED, FULL, READ_ONLY = "killed at a file operation", "disk full", "read-only disk"
KILLED_WRITING, FULL_WRITING = "killed within a write", "disk full within a write"
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
TRUNCATED, FLIPPED = "truncated file", "flipped bit"
KINDS = (KILLED, FULL, READ_ONLY, KILLED_WRITING, FULL_WRITING, *SIGNALS, TRUNCATED, FLIPPED)
SMALLEST_LIMIT, LARGEST_LIMIT = 1_000, 12_000
"""Bytes that files may have: enough for the output, which also goes to a file, and fewer than weights need."""
RECOVERED, REFUSED, LOST, MISSED = "recovered", "refused", "lost", "missed"
"""Repeating the command made the same files; so did following its one line; anything else; the fault never arose."""


class Trial(NamedTuple):
    """One fault to inject."""

    kind: str
    command: str
    place: float
    """The moment in the command, or the place in the file, as a part of the whole."""
    file: str = ""


class LostError(Exception):
    """A fault had a forbidden consequence."""


class Result(NamedTuple):
    """Exit code (negative after a signal) and output of a command that has ended."""

    code: int
    output: str

    @property
    def complaint(self) -> str:
        """The single error line of a command that refused; empty if there is none, or more than one."""
        lines = [line for line in self.output.splitlines() if line.startswith("nmt: ")]
        return lines[0] if self.code == 2 and len(lines) == 1 and "Traceback" not in self.output else ""


def main() -> int:
    """Run the trials and return 1 if any was lost."""
    global _sandbox  # noqa: PLW0603 - the forked workers have it from here
    parser = argparse.ArgumentParser(
        prog="faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments and places of the faults")
    parser.add_argument("--trials", type=int, default=130)
    parser.add_argument("--only", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help="run only these kinds")
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel trials")
    parser.add_argument("--folder", help="parent of the working folder (some megabytes)")
    options = parser.parse_args()
    folder, started = Path(tempfile.mkdtemp(prefix="faults-", dir=options.folder)), time.monotonic()
    draws = random.Random(options.seed)
    trials = [_draw(draws, options.only[number % len(options.only)]) for number in range(options.trials)]
    print(f"{len(trials):,} faults, seed {options.seed}, in {folder}", flush=True)
    _sandbox = Sandbox(folder)
    counts: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        for trial, (verdict, note) in zip(trials, pool.map(judge, trials, range(len(trials))), strict=True):
            place = f"{trial.kind}, {trial.command}, {trial.file or 'everywhere'}, at {trial.place:.1%}"
            print(f"{verdict:10} {place}  {note[:300]}", flush=True)
            counts.update([(trial.kind, verdict), ("all", verdict)])
    verdicts = (RECOVERED, REFUSED, LOST, MISSED)
    for row in (
        ("fault", *verdicts),
        *((kind, *(counts[kind, each] for each in verdicts)) for kind in (*KINDS, "all")),
    ):
        print(f"{row[0]:<28}" + "".join(f"{cell:>11}" for cell in row[1:]))
    print(f"{len(trials):,} faults in {time.monotonic() - started:,.0f} s")
    if counts["all", LOST]:
        return 1
    shutil.rmtree(folder)
    return 0


def _draw(draws: random.Random, kind: str) -> Trial:
    if kind not in (TRUNCATED, FLIPPED):
        return Trial(kind, draws.choice(CHAIN), draws.random())
    command = draws.choice(list(CORRUPTED))
    return Trial(kind, command, draws.random(), draws.choice(CORRUPTED[command]))


class FileCalls:
    """Count the file operations of a child process, in memory that it shares with this one, and act before one."""

    def __init__(self) -> None:
        self._shared = mmap(-1, 8)

    @property
    def count(self) -> int:
        """The number of operations so far."""
        return int.from_bytes(self._shared[:], sys.byteorder)

    def inject(self, number: int = -1, act: Callable[[], object] = lambda: None) -> None:
        """Count from now on, and act before the operation of this number, counted from 0."""
        for name in FILE_CALLS:
            setattr(os, name, self._counted(getattr(os, name), number, act))

    def _counted(self, call: Callable[..., Any], number: int, act: Callable[[], object]) -> Callable[..., Any]:
        def counted(*words: Any, **options: Any) -> Any:
            before = self.count
            self._shared[:] = (before + 1).to_bytes(8, sys.byteorder)
            if before == number:
                act()
            return call(*words, **options)

        return counted


class Sandbox:
    """A corpus, and the files that an uninterrupted chain makes from it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.text = folder, folder / "text"
        torch.set_num_threads(1)  # threads do not survive a fork
        for command in CHAIN:
            import_module(COMMANDS[command].module)  # children have it from here
        compose([])
        self._write_corpus()
        self.seconds: dict[str, float] = {}
        self.file_calls: dict[str, int] = {}
        self.state(0).mkdir(parents=True)
        for index, command in enumerate(CHAIN):
            shutil.copytree(self.state(index), self.state(index + 1), symlinks=True)
            calls, started = FileCalls(), time.monotonic()
            done = self.run(command, self.state(index + 1), injection=calls.inject)
            if done.code:
                raise SystemExit(f"{command} fails even without a fault: {done.output}")
            self.seconds[command], self.file_calls[command] = time.monotonic() - started, calls.count
        self.products = {command: _products(self.state(len(CHAIN)), command) for command in CHAIN}

    def state(self, length: int) -> Path:
        """Return the folder with the files of this many commands."""
        return self.folder / "states" / str(length)

    def run(self, command: str, folder: Path, injection: Callable[[], object] | None = None) -> Result:
        """Run a command to its end, on the files of a folder."""
        return self.wait(self.start(command, folder, injection), folder)

    def start(self, command: str, folder: Path, injection: Callable[[], object] | None = None) -> int:
        """Start a command in a child process, and return its number."""
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            return pid
        files = [
            f"data.{split}=[{self.text}/{split}.en,{self.text}/{split}.de]" for split in ("train", "valid", "test")
        ]
        own = [each.format(folder=folder, text=self.text) for each in OWN_SETTINGS.get(command, ())]
        words = [*SETTINGS, *files, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", *own]
        _run_child([command, *words], _log(folder), injection)
        raise AssertionError("a child has ended")

    def wait(self, pid: int, folder: Path) -> Result:
        """Wait for a command to end, and abort it if it hangs."""
        deadline = time.monotonic() + HANG_SECONDS
        ended, status = os.waitpid(pid, os.WNOHANG)
        while not ended:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGABRT)
            time.sleep(0.005)
            ended, status = os.waitpid(pid, os.WNOHANG)
        return Result(os.waitstatus_to_exitcode(status), _log(folder).read_text(errors="replace"))

    def _write_corpus(self) -> None:
        self.text.mkdir(parents=True)
        words = {"en": ["the", "man", "sees", "old", "tree"], "de": ["der", "mann", "sieht", "alten", "baum"]}
        for seed, (split, count) in enumerate({"train": 240, "valid": 8, "test": 8}.items()):
            draws = random.Random(seed)
            chosen = [[draws.randrange(5) for _ in range(draws.randrange(3, 9))] for _ in range(count)]
            for language, known in words.items():
                lines = [f"{number} {' '.join(known[word] for word in row)}\n" for number, row in enumerate(chosen)]
                (self.text / f"{split}.{language}").write_text("".join(lines))


def _run_child(arguments: list[str], log: Path, injection: Callable[[], object] | None) -> None:
    """Run the command in the child process, which ends here."""
    code = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        for number in (1, 2):
            os.dup2(file, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        sys.modules["__main__"] = ModuleType("__main__")  # worker processes need not import this script
        if injection:
            injection()
        code = nmt(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the injected limit of files is also that of these
                stream.flush()
        os._exit(code)


_sandbox: Sandbox


def judge(trial: Trial, number: int) -> tuple[str, str]:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost; return the verdict and why."""
    folder = _sandbox.folder / f"trial-{number}"
    shutil.copytree(_sandbox.state(CHAIN.index(trial.command)), folder, symlinks=True)
    try:
        if trial.file:
            _corrupt(folder / trial.file, trial)
        else:
            done = _with_fault(trial, folder)
            met = done.code or os.strerror(errno.EFBIG) in done.output or trial.kind in (KILLED, FULL, READ_ONLY)
            if not met:
                shutil.rmtree(folder)
                return MISSED, "the command succeeded"
            _check_message(done)
        complaint = _recover(folder, trial.command, damaged_data=trial.file.startswith("data/"))
    except Exception as error:  # also an unexpected one means that the fault was not handled
        return LOST, str(error) or repr(error)
    shutil.rmtree(folder)
    return (REFUSED, complaint) if complaint else (RECOVERED, "")


def _with_fault(trial: Trial, folder: Path) -> Result:
    """Run a command that meets a fault."""
    acts: dict[str, Callable[[], object]] = {
        KILLED: lambda: os.kill(os.getpid(), signal.SIGKILL),
        FULL: lambda: _fail(errno.ENOSPC),
        READ_ONLY: lambda: _fail(errno.EROFS),
    }
    if trial.kind in acts:
        number = int(trial.place * _sandbox.file_calls[trial.command])
        return _sandbox.run(trial.command, folder, lambda: FileCalls().inject(number, acts[trial.kind]))
    if trial.kind in SIGNALS:
        pid = _sandbox.start(trial.command, folder)
        time.sleep(trial.place * _sandbox.seconds[trial.command])
        os.kill(pid, SIGNALS[trial.kind])
        return _sandbox.wait(pid, folder)
    return _sandbox.run(trial.command, folder, lambda: _limit_files(trial))


def _fail(code: int) -> None:
    raise OSError(code, os.strerror(code))


def _limit_files(trial: Trial) -> None:
    """Limit the size of files, so that a longer write fails, or kills the process in the middle."""
    size = SMALLEST_LIMIT + int(trial.place * (LARGEST_LIMIT - SMALLEST_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if trial.kind == KILLED_WRITING else signal.SIG_IGN)


def _corrupt(path: Path, trial: Trial) -> None:
    content = bytearray(path.read_bytes())
    position = int(trial.place * len(content))
    if trial.kind == TRUNCATED:
        del content[position:]
    else:
        content[position] ^= 1 << int(trial.place * 1000) % 8
    path.write_bytes(content)


def _check_message(done: Result) -> None:
    """Make sure that a command that met a fault printed no traceback, and did not fail without a message."""
    if "Traceback" in done.output or (done.code == 2 and not done.complaint):
        raise LostError(f"exit code {done.code} without one clear line: {done.output}")
    if done.code > 0 and done.code not in (2, 130, 143):
        raise LostError(f"exit code {done.code}: {done.output[-300:]}")


def _recover(folder: Path, command: str, *, damaged_data: bool) -> str:
    """Repeat the command without the fault; if it refuses, do what its message asks for. Compare the files."""
    done = _sandbox.run(command, folder)
    if complaint := done.complaint:
        for each in CHAIN[: CHAIN.index(command) + 1]:
            done = _sandbox.run(each, folder)
            while done.code and _delete_as_asked(done.complaint):
                done = _sandbox.run(each, folder)
    if done.code or "Traceback" in done.output:
        raise LostError(f"the plain command fails (exit code {done.code}): {done.output[-300:]}")
    if damaged_data and _sandbox.run("data", folder).code:
        raise LostError("the data cannot be repaired")
    if command == "train":  # an interruption must not add a checkpoint to those that are averaged
        command = "average"
        if (done := _sandbox.run(command, folder)).code:
            raise LostError(f"the checkpoints cannot be averaged: {done.output[-300:]}")
    for each in CHAIN[: CHAIN.index(command) + 1]:
        here = _products(folder, each)
        if wrong := [name for name, content in _sandbox.products[each].items() if here.get(name) != content]:
            raise LostError(f"{', '.join(wrong)} differ")
    if left := list(folder.rglob(f"*{PARTIAL}*")):
        raise LostError(f"{left[0].relative_to(folder)} is a leftover")
    return complaint


def _delete_as_asked(complaint: str) -> bool:
    """Delete the file or folder that a message asks to delete, and return whether there was one."""
    forms = (r"delete (/\S+)", r"(/\S+).*Delete it", r"checkpoints in (/\S+) are damaged.*delete that folder")
    named = next(filter(None, (re.search(form, complaint) for form in forms)), None)
    if not named:
        return False
    path = Path(named[1].rstrip(":,."))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True


def _products(folder: Path, command: str) -> dict[str, bytes]:
    """Return the content of the files of a command that must be the same bit for bit."""
    paths = [path for pattern in PRODUCTS[command] for path in folder.glob(pattern)]
    return {
        str(path.relative_to(folder)): _losses(path) if path.name == "metrics.jsonl" else path.read_bytes()
        for path in paths
    }


def _losses(metrics: Path) -> bytes:
    """Return steps and losses of the training events, but not times, which differ between runs."""
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    return repr([(event["step"], event["loss"]) for event in events if event["event"] == "train"]).encode()


def _log(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")


if __name__ == "__main__":
    sys.exit(main())
