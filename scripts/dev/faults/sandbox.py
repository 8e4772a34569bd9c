"""A small corpus, a small model, and commands that run on them in forked children, which start quickly."""

import faulthandler
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from mmap import mmap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from nmt.cli import main
from nmt.config.compose import compose
from nmt.storage.files import PARTIAL

CHAIN = ("data", "train", "average", "eval", "translate", "synthesize")
STEPS = 12
HANG_SECONDS = 900
"""Seconds after which a command counts as hung; on a shared machine, commands of seconds may take minutes."""
FILE_CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir", "symlink")
"""Functions of `os` through which every complete file or folder is written."""
SETTINGS = (
    "data=files", "data.corpus=toy", "data.max_pieces=40", "tokenizer.vocab_size=80", "name=toy",
    "model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.1",
    f"training.steps={STEPS}", "training.batch_tokens=200", "training.warmup_steps=4", "training.learning_rate=5e-3",
    "training.save_every=3", "training.valid_every=6", "training.valid_sentences=2", "training.log_every=1",
    "training.keep_last=3", "averaging.last=2", "decoding.beam=2", "decoding.extra_length=5",
    "runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32",
)  # fmt: skip
OWN_SETTINGS = {
    "translate": ("input={text}/valid.en", "output={outputs}/translated.txt"),
    "synthesize": ("input={text}/train.en", "synthesize.shard_lines=80", "output={outputs}/made"),
}
"""Settings of one command; outputs and text are folders."""
PRODUCTS = {
    "data": ("data/toy/*.tokens", "data/toy/*.offsets", "data/toy/*.model", "data/toy/*.en", "data/toy/*.de"),
    "train": (f"outputs/toy/checkpoints/step-{STEPS:08}/*model*", "outputs/toy/metrics.jsonl"),
    "average": ("outputs/toy/checkpoints/averaged/model.safetensors",),
    "eval": ("outputs/toy/eval/test.hyp.txt",),
    "translate": ("outputs/translated.txt",),
    "synthesize": ("outputs/made/train-*",),
}
"""The files of each command that must be the same bit for bit; of metrics.jsonl, which has times, the losses."""

Injection = Callable[[], object]


class FileCalls:
    """Count the file operations of a child process, in memory that it shares with this one, and act before one."""

    def __init__(self) -> None:
        self._shared = mmap(-1, 8)

    @property
    def count(self) -> int:
        """The number of operations so far."""
        return int.from_bytes(self._shared[:], sys.byteorder)

    def inject(self, number: int = -1, act: Injection | None = None) -> None:
        """Count from now on, and act before the operation of this number, counted from 0."""
        for name in FILE_CALLS:
            setattr(os, name, self._counted(getattr(os, name), number, act))

    def _counted(self, call: Callable[..., Any], number: int, act: Injection | None) -> Callable[..., Any]:
        def counted(*words: Any, **options: Any) -> Any:
            before = self.count
            self._shared[:] = (before + 1).to_bytes(8, sys.byteorder)
            if act and before == number:
                act()
            return call(*words, **options)

        return counted


@dataclass
class Result:
    """Exit code and output of a command that has ended."""

    code: int
    """Exit code; negative if a signal ended the command."""
    output: str

    @property
    def last_line(self) -> str:
        """The last line of the output."""
        return (self.output.splitlines() or [""])[-1]

    @property
    def complaint(self) -> str:
        """The single error line of a command that refused; empty if there is none, or more than one."""
        lines = [line for line in self.output.splitlines() if line.startswith("nmt: ")]
        return lines[0] if self.code == 2 and len(lines) == 1 and "Traceback" not in self.output else ""


class Sandbox:
    """A corpus, and the files that an uninterrupted chain makes from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        torch.set_num_threads(1)  # threads do not survive a fork
        self._write_corpus()
        compose(self._overrides("data", folder))  # what Hydra makes once per process, each copy has from here
        self.seconds: dict[str, float] = {}
        self.file_calls: dict[str, int] = {}
        self.products: dict[str, dict[str, bytes]] = {}
        """The files that each command makes."""
        for length, command in enumerate(CHAIN):
            self._make_state(length, command)
        self.products = products_of(self._state(len(CHAIN)))

    def copy(self, command: str, to: Path) -> None:
        """Copy the files that exist before a command."""
        shutil.copytree(self._state(CHAIN.index(command)), to, symlinks=True)

    def start(self, command: str, folder: Path, *more: str, injection: Injection | None = None) -> int:
        """Start a command on the files of a folder in a child process, and return its number."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._run_child([command, *self._overrides(command, folder), *more], folder, injection)
        return pid

    def run(self, command: str, folder: Path, *more: str, injection: Injection | None = None) -> Result:
        """Run a command to its end."""
        return self.wait(self.start(command, folder, *more, injection=injection), folder)

    def wait(self, pid: int, folder: Path) -> Result:
        """Wait for a command to end, and abort it if it hangs."""
        deadline = time.monotonic() + HANG_SECONDS
        ended, status = os.waitpid(pid, os.WNOHANG)
        while not ended:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGABRT)  # faulthandler prints the stack
            time.sleep(0.005)
            ended, status = os.waitpid(pid, os.WNOHANG)
        return Result(os.waitstatus_to_exitcode(status), _log_file(folder).read_text(errors="replace"))

    def differences(self, folder: Path, command: str) -> list[str]:
        """Return how a folder differs from that of an uninterrupted chain up to this command."""
        found = products_of(folder)
        commands = CHAIN[: CHAIN.index(command) + 1]
        wanted = {name: content for each in commands for name, content in self.products[each].items()}
        here = {name: content for each in commands for name, content in found[each].items()}
        faults = [f"{name} differs" for name in wanted if here.get(name) != wanted[name]]
        return faults + [f"{path.relative_to(folder)} is a leftover" for path in folder.rglob(f"*{PARTIAL}*")]

    def _modules_file(self) -> Path:
        return self.folder / "modules.txt"

    def _state(self, length: int) -> Path:
        return self.folder / "states" / str(length)

    def _write_corpus(self) -> None:
        text = self.folder / "text"
        text.mkdir(parents=True)
        words = {"en": ["the", "man", "sees", "old", "tree"], "de": ["der", "mann", "sieht", "alten", "baum"]}
        for seed, (split, count) in enumerate({"train": 240, "valid": 8, "test": 8}.items()):
            random = np.random.default_rng(seed)
            chosen = [random.integers(0, 5, random.integers(3, 9)) for _ in range(count)]
            for language, known in words.items():
                lines = [f"{number} {' '.join(known[word] for word in row)}\n" for number, row in enumerate(chosen)]
                (text / f"{split}.{language}").write_text("".join(lines))

    def _make_state(self, length: int, command: str) -> None:
        """Run a command without a fault; import what it has imported, and measure its time and file operations."""
        before, after = self._state(length), self._state(length + 1)
        before.mkdir(parents=True, exist_ok=True)
        for _ in range(2):  # the second run is as fast as the trials
            shutil.rmtree(after, ignore_errors=True)
            shutil.copytree(before, after, symlinks=True)
            calls, started = FileCalls(), time.monotonic()
            done = self.run(command, after, injection=calls.inject)
            if done.code:
                raise RuntimeError(f"{command} fails even without a fault: {done.output}")
            self.seconds[command], self.file_calls[command] = time.monotonic() - started, calls.count
            for name in self._modules_file().read_text().splitlines():
                with suppress(ImportError):  # a name that a package gave to something else than a module
                    import_module(name)

    def _overrides(self, command: str, folder: Path) -> list[str]:
        """Return the settings of a command on the files of a folder."""
        text = self.folder / "text"
        files = [f"data.{split}=[{text}/{split}.en,{text}/{split}.de]" for split in ("train", "valid", "test")]
        own = (each.format(outputs=folder / "outputs", text=text) for each in OWN_SETTINGS.get(command, ()))
        return [*SETTINGS, *files, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", *own]

    def _run_child(self, arguments: list[str], folder: Path, injection: Injection | None) -> None:
        """Run the command in the child process, which ends here."""
        code = 1
        try:
            log = os.open(_log_file(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            faulthandler.enable()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            sys.modules["__main__"] = ModuleType("__main__")  # worker processes need not import this script
            if injection:
                injection()
            code = _exit_code(arguments)
            if not self.products:  # of the uninterrupted chain
                self._modules_file().write_text("\n".join(sys.modules))
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):  # the injected limit of files is also that of these
                    stream.flush()
            os._exit(code)


def products_of(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return the content of the files of each command that must be the same bit for bit."""
    return {
        command: {
            str(path.relative_to(folder)): _losses(path) if path.name == "metrics.jsonl" else path.read_bytes()
            for pattern in patterns
            for path in folder.glob(pattern)
        }
        for command, patterns in PRODUCTS.items()
    }


def _losses(metrics: Path) -> bytes:
    """Return steps and losses of the training events, but not times, which differ between runs."""
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    return repr([(event["step"], event["loss"]) for event in events if event["event"] == "train"]).encode()


def _log_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")


def _exit_code(arguments: list[str]) -> int:
    """Run a command, and return its exit code as the shell would see it."""
    try:
        return main(arguments)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return int(error.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
