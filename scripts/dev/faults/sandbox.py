"""A small chain of commands, each of which runs in a child process in which a fault can be injected."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.cli import main as nmt
from nmt.commands import COMMANDS

STEPS = 12
HANG_SECONDS = 900  # on a shared machine, commands of seconds may take minutes
SETTINGS = (
    "data=files", "data.corpus=toy", "data.max_pieces=40", "tokenizer.vocab_size=80", "name=toy",
    "model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.1",
    f"training.steps={STEPS}", "training.batch_tokens=200", "training.warmup_steps=4", "training.learning_rate=5e-3",
    "training.save_every=3", "training.valid_every=6", "training.valid_sentences=2", "training.log_every=1",
    "training.keep_last=3", "averaging.last=2", "decoding.beam=2", "decoding.extra_length=5", "runtime.workers=1",
    "runtime.threads=1", "runtime.device=cpu", "runtime.precision=fp32", "synthesize.shard_lines=80",
)  # fmt: skip
METRICS = "outputs/toy/metrics.jsonl"
PRODUCTS = {
    "data": ("data/toy/*.tokens", "data/toy/*.offsets", "data/toy/*.model", "data/toy/*.en", "data/toy/*.de"),
    "train": (f"outputs/toy/checkpoints/step-{STEPS:08}/*model*", METRICS),
    "average": ("outputs/toy/checkpoints/averaged/model.safetensors",),
    "eval": ("outputs/toy/eval/test.hyp.txt",),
    "synthesize": ("outputs/made/train-*",),
}
"""The files of each command that must be the same bit for bit; of metrics.jsonl, which has times, the losses."""
CHAIN = tuple(PRODUCTS)
FILE_CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir", "symlink")
"""Functions of `os` through which every complete file or folder is written."""
KILLED, FULL, FULL_WRITING = "killed at a file operation", "disk full at a file operation", "disk full within a write"
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}


class Result(NamedTuple):
    """Exit code (negative after a signal), output and number of file operations of a command that has ended."""

    code: int
    output: str
    file_calls: int

    @property
    def complaint(self) -> str:
        """The single error line of a command that refused; empty if there is none, or more than one."""
        lines = [line for line in self.output.splitlines() if line.startswith("nmt: ")]
        return lines[0] if self.code == 2 and len(lines) == 1 else ""


class Sandbox:
    """A corpus, and the files that an uninterrupted chain makes from it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.text, draws = folder, folder / "text", random.Random(1)
        self.text.mkdir()
        for split, count in {"train": 240, "valid": 8, "test": 8}.items():
            words = (
                draws.choices(("the", "man", "sees", "old", "tree"), k=draws.randrange(3, 9)) for _ in range(count)
            )
            lines = "".join(f"{number} {' '.join(row)}\n" for number, row in enumerate(words))
            (self.text / f"{split}.en").write_text(lines)
            (self.text / f"{split}.de").write_text(lines.upper())
        torch.set_num_threads(1)  # threads do not survive a fork
        for command in CHAIN:
            import_module(COMMANDS[command].module)  # children have it from here
        self.states = [folder / f"after-{number}" for number in range(len(CHAIN) + 1)]
        """Folders with the files of no command, of the first one, of the first two, and so on."""
        self.states[0].mkdir()
        self.whole: dict[str, tuple[float, int]] = {}
        """The seconds and the file operations of each command."""
        for command, before, after in zip(CHAIN, self.states, self.states[1:], strict=False):
            shutil.copytree(before, after, symlinks=True)
            started, done = time.monotonic(), self.run(command, after)
            assert not done.code, f"{command} fails even without a fault: {done.output}"
            self.whole[command] = (time.monotonic() - started, done.file_calls)

    def run(self, command: str, folder: Path, fault: str = "", moment: float = 0.0) -> Result:
        """Run a command to its end on the files of a folder; a fault comes after this part of the command."""
        log = folder.with_name(f"{folder.name}.log")
        splits = (f"data.{each}=[{self.text}/{each}.en,{self.text}/{each}.de]" for each in ("train", "valid", "test"))
        words = [*SETTINGS, *splits, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs"]
        words += [f"input={self.text}/train.en", f"output={folder}/outputs/made"]  # of synthesize
        seconds, calls = self.whole.get(command, (0.0, 0))
        counter, begun = get_context("fork").Value("q", 0), get_context("fork").Event()
        pid = os.fork()
        if not pid:
            _run_child([command, *words], log, fault, moment, calls, counter, begun)
        if fault in SIGNALS:
            begun.wait(HANG_SECONDS)
            time.sleep(moment * seconds)
            os.kill(pid, SIGNALS[fault])
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Result(code, log.read_text(errors="replace"), counter.value)


def _run_child(words: list[str], log: Path, fault: str, moment: float, calls: int, counter: Any, begun: Any) -> None:
    """Run the command in the child process, which ends here, and count its file operations; say when it begins."""

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*words: Any, **options: Any) -> Any:
            counter.value += 1
            if counter.value == int(moment * calls) + 1:
                if fault == KILLED:
                    os.kill(os.getpid(), signal.SIGKILL)
                if fault == FULL:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*words, **options)

        return counting

    code: str | int | None = 1
    try:
        signal.alarm(HANG_SECONDS)
        sys.stdout = sys.stderr = log.open("w", buffering=1)
        for number in (1, 2):
            os.dup2(sys.stdout.fileno(), number)
        for name in FILE_CALLS:
            setattr(os, name, counted(getattr(os, name)))
        if fault == FULL_WRITING:
            size = int(1_000 + moment * 11_000)  # of a file: enough for the output, and fewer than weights need
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        begun.set()
        code = nmt(words)
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code if isinstance(code, int) else 1)


def products(folder: Path, command: str) -> dict[str, bytes]:
    """Return the content of the files of a command that must be the same bit for bit."""
    paths = [path for pattern in PRODUCTS[command] for path in folder.glob(pattern)]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    if METRICS in found:
        events = [event for event in map(json.loads, found[METRICS].splitlines()) if event["event"] == "train"]
        found[METRICS] = repr([(each["step"], each["loss"]) for each in events]).encode()
    return found
