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
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from nmt.cli import main as nmt
from nmt.commands import COMMANDS
from nmt.config.compose import compose
from nmt.storage.files import PARTIAL

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
CHAIN = tuple(PRODUCTS)
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
KILLED, FULL = "killed at a file operation", "disk full at a file operation"
FULL_WRITING, FLIPPED = "disk full within a write", "flipped bit"
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
KINDS = (KILLED, FULL, FULL_WRITING, *SIGNALS, FLIPPED)
SMALLEST_LIMIT, LARGEST_LIMIT = 1_000, 12_000
"""Bytes that files may have: enough for the output, which also goes to a file, and fewer than weights need."""
RECOVERED, REFUSED, LOST, MISSED = VERDICTS = ("recovered", "refused", "lost", "missed")
"""Repeating the command made the same files; so did following its one line; anything else; the fault never arose."""


class Trial(NamedTuple):
    """One fault to inject."""

    number: int
    kind: str
    command: str
    place: float
    """The moment in the command, or the place in the file, as a part of the whole."""
    file: str = ""


class Result(NamedTuple):
    """Exit code (negative after a signal) and output of a command that has ended."""

    code: int
    output: str

    @property
    def complaint(self) -> str:
        """The single error line of a command that refused; empty if there is none, or more than one."""
        lines = [line for line in self.output.splitlines() if line.startswith("nmt: ")]
        return lines[0] if self.code == 2 and len(lines) == 1 and "Traceback" not in self.output else ""


class LostError(Exception):
    """A fault had a forbidden consequence."""


def require(condition: object, message: str) -> None:
    """Raise LostError unless a condition holds."""
    if not condition:
        raise LostError(message)


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
    draws, trials = random.Random(options.seed), []
    for number in range(options.trials):
        kind = options.only[number % len(options.only)]
        command = draws.choice(list(CORRUPTED) if kind == FLIPPED else CHAIN)
        file = draws.choice(CORRUPTED[command]) if kind == FLIPPED else ""
        trials.append(Trial(number, kind, command, draws.random(), file))
    print(f"{len(trials):,} faults, seed {options.seed}, in {folder}", flush=True)
    _sandbox = Sandbox(folder)
    counts: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        for trial, verdict, note in pool.map(judge, trials):
            place = f"{trial.kind}, {trial.command}, {trial.file or 'everywhere'}, at {trial.place:.1%}"
            print(f"{verdict:10} {place}  {note[:300]}", flush=True)
            counts.update([(trial.kind, verdict), ("all", verdict)])
    print(f"{'fault':<28}" + "".join(f"{verdict:>11}" for verdict in VERDICTS))
    for kind in (*KINDS, "all"):
        print(f"{kind:<28}" + "".join(f"{counts[kind, verdict]:>11}" for verdict in VERDICTS))
    print(f"{len(trials):,} faults in {time.monotonic() - started:,.0f} s")
    if not counts["all", LOST]:
        shutil.rmtree(folder)
    return int(bool(counts["all", LOST]))


class Sandbox:
    """A corpus, and the files that an uninterrupted chain makes from it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.text = folder, folder / "text"
        torch.set_num_threads(1)  # threads do not survive a fork
        for command in CHAIN:
            import_module(COMMANDS[command].module)  # children have it from here
        compose([])
        self._write_corpus()
        self.file_calls: Any = get_context("fork").Value("q", 0)
        """The file operations of the last command, in memory that child processes share."""
        self.lasts: dict[str, tuple[float, int]] = {}
        """The seconds and the file operations of each command."""
        self.state(0).mkdir(parents=True)
        for index, command in enumerate(CHAIN):
            shutil.copytree(self.state(index), self.state(index + 1), symlinks=True)
            started, self.file_calls.value = time.monotonic(), 0
            done = self.run(command, self.state(index + 1))
            if done.code:
                raise SystemExit(f"{command} fails even without a fault: {done.output}")
            self.lasts[command] = (time.monotonic() - started, self.file_calls.value)
        self.products = {command: _products(self.state(len(CHAIN)), command) for command in CHAIN}

    def state(self, length: int) -> Path:
        """Return the folder with the files of this many commands."""
        return self.folder / "states" / str(length)

    def run(self, command: str, folder: Path, fault: Trial | None = None) -> Result:
        """Run a command to its end in a child process, on the files of a folder, and let it meet a fault."""
        log = folder.with_name(f"{folder.name}.log")
        splits = (f"data.{each}=[{self.text}/{each}.en,{self.text}/{each}.de]" for each in ("train", "valid", "test"))
        own = (each.format(folder=folder, text=self.text) for each in OWN_SETTINGS.get(command, ()))
        words = [*SETTINGS, *splits, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", *own]
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS.values())  # for the child, until the command begins
        pid = os.fork()
        if not pid:
            self._run_child([command, *words], log, fault)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS.values())
        if fault and fault.kind in SIGNALS:
            time.sleep(fault.place * self.lasts[command][0])
            os.kill(pid, SIGNALS[fault.kind])
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        output = log.read_text(errors="replace")
        require(code != -signal.SIGALRM, f"{command} hangs: {output[-300:]}")
        return Result(code, output)

    def _run_child(self, arguments: list[str], log: Path, fault: Trial | None) -> None:
        """Run the command in the child process, which ends here."""
        code: str | int | None = 1
        try:
            signal.alarm(HANG_SECONDS)
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            for number in (1, 2):
                os.dup2(file, number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            sys.modules["__main__"] = ModuleType("__main__")  # worker processes need not import this script
            self._inject(fault)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS.values())
            code = nmt(arguments)
        except SystemExit as error:
            code = error.code
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):  # the injected limit of files is also that of these
                    stream.flush()
            os._exit(code if isinstance(code, int) else 1)

    def _inject(self, fault: Trial | None) -> None:
        """Count the file operations of this process from now on; act before one, or limit the size of files."""
        counter = self.file_calls if not fault else get_context("fork").Value("q", 0)
        number = int(fault.place * self.lasts[fault.command][1]) if fault and fault.kind in (KILLED, FULL) else -1

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def counting(*words: Any, **options: Any) -> Any:
                counter.value += 1
                if fault and counter.value == number + 1:
                    if fault.kind == KILLED:
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return call(*words, **options)

            return counting

        for name in FILE_CALLS:
            setattr(os, name, counted(getattr(os, name)))
        if fault and fault.kind == FULL_WRITING:
            size = SMALLEST_LIMIT + int(fault.place * (LARGEST_LIMIT - SMALLEST_LIMIT))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def _write_corpus(self) -> None:
        self.text.mkdir()
        words = {"en": ["the", "man", "sees", "old", "tree"], "de": ["der", "mann", "sieht", "alten", "baum"]}
        for seed, (split, count) in enumerate({"train": 240, "valid": 8, "test": 8}.items()):
            draws = random.Random(seed)
            chosen = [[draws.randrange(5) for _ in range(draws.randrange(3, 9))] for _ in range(count)]
            for language, known in words.items():
                lines = [f"{number} {' '.join(known[word] for word in row)}\n" for number, row in enumerate(chosen)]
                (self.text / f"{split}.{language}").write_text("".join(lines))


_sandbox: Sandbox


def judge(trial: Trial) -> tuple[Trial, str, str]:
    """Run a trial on a fresh copy of the files, which is kept if the trial is lost; return the verdict and why."""
    folder = _sandbox.folder / f"trial-{trial.number}"
    shutil.copytree(_sandbox.state(CHAIN.index(trial.command)), folder, symlinks=True)
    try:
        verdict, note = _outcome(trial, folder)
    except Exception as error:  # also an unexpected one means that the fault was not handled
        return trial, LOST, str(error) or repr(error)
    shutil.rmtree(folder)
    return trial, verdict, note


def _outcome(trial: Trial, folder: Path) -> tuple[str, str]:
    """Inject the fault, then repeat the command without it; if it refuses, do what it asks for. Compare the files."""
    if trial.file:
        content = bytearray((folder / trial.file).read_bytes())
        content[int(trial.place * len(content))] ^= 1 << trial.number % 8
        (folder / trial.file).write_bytes(content)
    else:
        done = _sandbox.run(trial.command, folder, trial)
        if not done.code and os.strerror(errno.EFBIG) not in done.output and trial.kind not in (KILLED, FULL):
            return MISSED, "the command succeeded"
        require("Traceback" not in done.output, f"traceback: {done.output}")
        require(done.code != 2 or done.complaint, f"exit code 2 without one clear line: {done.output}")
        require(done.code <= 0 or done.code in (2, 130, 143), f"exit code {done.code}: {done.output[-300:]}")
    last = CHAIN.index(trial.command) + 1
    done = _sandbox.run(trial.command, folder)
    if complaint := done.complaint:
        for each in CHAIN[:last]:
            done = _sandbox.run(each, folder)
            while done.code and _delete_as_asked(done.complaint):
                done = _sandbox.run(each, folder)
    require(not done.code and "Traceback" not in done.output, f"the plain command fails: {done.output[-300:]}")
    if trial.file.startswith("data/"):
        require(not _sandbox.run("data", folder).code, "the data cannot be repaired")
    if trial.command == "train":  # an interruption must not add a checkpoint to those that are averaged
        last += 1
        require(not _sandbox.run("average", folder).code, "the checkpoints cannot be averaged")
    for each in CHAIN[:last]:
        here = _products(folder, each)
        wrong = [name for name, content in _sandbox.products[each].items() if here.get(name) != content]
        require(not wrong, f"{', '.join(wrong)} differ")
    left = [str(path.relative_to(folder)) for path in folder.rglob(f"*{PARTIAL}*")]
    require(not left, f"leftovers: {', '.join(left)}")
    return (REFUSED, complaint) if complaint else (RECOVERED, "")


def _delete_as_asked(complaint: str) -> bool:
    """Delete the file or folder that a message asks to delete, and return whether there was one."""
    named = re.search(r"delete (/\S+)|(/\S+).*(?:Delete it|are damaged.*delete that folder)", complaint)
    if not named:
        return False
    path = Path((named[1] or named[2]).rstrip(":,."))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True


def _products(folder: Path, command: str) -> dict[str, bytes]:
    """Return the content of the files of a command that must be the same bit for bit."""
    paths = [path for pattern in PRODUCTS[command] for path in folder.glob(pattern)]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    if metrics := found.get("outputs/toy/metrics.jsonl"):
        events = [event for event in map(json.loads, metrics.splitlines()) if event["event"] == "train"]
        found["outputs/toy/metrics.jsonl"] = repr([(each["step"], each["loss"]) for each in events]).encode()
    return found


if __name__ == "__main__":
    sys.exit(main())
