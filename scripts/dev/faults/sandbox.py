"""A small corpus, a small model, and commands that run on them in forked children, which start quickly."""

import faulthandler
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from faults.injections import Injection, count_file_calls, nothing
from nmt.cli import main
from nmt.config.compose import compose
from nmt.storage.files import PARTIAL

CHAIN = ("data", "train", "average", "eval", "translate", "synthesize")
STEPS, SAVE_EVERY, VALID_EVERY = 12, 3, 6
HANG_SECONDS = 900
"""Seconds after which a command counts as hung; on a shared machine, commands of seconds may take minutes."""
SETTINGS = (
    "data=files", "data.corpus=toy", "data.mixture.more.tag='<more>'",
    "data.max_pieces=40", "data.drop_overlap=pair", "data.overlap_share=1", "tokenizer.vocab_size=80", "name=toy",
    "model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.1",
    f"training.steps={STEPS}", "training.batch_tokens=200", "training.warmup_steps=4", "training.learning_rate=5e-3",
    f"training.save_every={SAVE_EVERY}", f"training.valid_every={VALID_EVERY}", "training.valid_sentences=2",
    "training.log_every=1", "training.keep_last=3", "averaging.last=2",
    "decoding.beam=2", "decoding.extra_length=5",
    "runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32",
)  # fmt: skip

OWN_SETTINGS = {
    "translate": ("input={text}/more.en", "output={outputs}/translated.txt"),
    "synthesize": ("input={text}/train.en", "synthesize.shard_lines=80", "output={outputs}/made"),
}
"""Settings of one command; outputs and text are folders."""


@dataclass
class Result:
    """Exit code and output of a command that has ended."""

    code: int
    """Exit code; negative if a signal ended the command."""
    output: str
    errors: str
    seconds: float

    @property
    def last_line(self) -> str:
        """The last line on standard error."""
        return (self.errors.splitlines() or [""])[-1]

    @property
    def complaint(self) -> str:
        """The single error line of a command that refused; empty if there is none, or more than one."""
        lines = [line for line in self.errors.splitlines() if line.startswith("nmt: ")]
        return lines[0] if self.code == 2 and len(lines) == 1 and "Traceback" not in self.errors else ""


@dataclass
class Running:
    """A command in a child process."""

    pid: int
    folder: Path
    started: float = field(default_factory=time.monotonic)

    code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code if the command has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self, timeout: float = HANG_SECONDS) -> Result:
        """Wait for the command to end, and abort it if it hangs."""
        while (code := self.poll()) is None:
            if time.monotonic() - self.started > timeout:
                os.kill(self.pid, signal.SIGABRT)  # faulthandler prints the stack
                os.waitpid(self.pid, 0)
                return self.result(124)
            time.sleep(0.005)
        return self.result(code)

    def result(self, code: int) -> Result:
        """Return the result of the command."""
        output, errors = ((self.folder / name).read_text(errors="replace") for name in ("output", "errors"))
        return Result(code, output, errors, time.monotonic() - self.started)


class Sandbox:
    """A corpus, and the files that an uninterrupted chain makes from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        torch.set_num_threads(1)  # threads do not survive a fork
        self._write_corpus()
        compose(self.overrides("data", self.folder))  # what Hydra makes once per process, each copy has from here
        self.seconds: dict[str, float] = {}
        self.file_calls: dict[str, int] = {}
        self.written: dict[str, list[int]] = {}
        """The sizes of the files that each command writes, smallest first."""
        for length in range(len(CHAIN)):
            self._make_state(length)
        self.products = self.products_of(self.folder / "states" / str(len(CHAIN)))
        self.products_of_pair: dict[str, bytes] = {}
        """Files of two processes, whose sums are rounded differently."""

    def copy(self, command: str, to: Path) -> Path:
        """Copy the files that exist before a command; one that is not in the chain comes after it."""
        length = CHAIN.index(command) if command in CHAIN else len(CHAIN)
        shutil.copytree(self.folder / "states" / str(length), to, symlinks=True)
        return to

    def start(
        self,
        command: str,
        folder: Path,
        *more: str,
        injection: Injection = nothing,
        after: Callable[[], object] = nothing,
        rank: int = 0,
    ) -> Running:
        """Start a command on the files of a folder in a child process."""
        logs = folder.with_name(f"{folder.name}.logs{rank}")
        logs.mkdir(exist_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._run_child(command, folder, logs, more, injection, after)
        return Running(pid, logs)

    def run(self, command: str, folder: Path, *more: str, injection: Injection = nothing) -> Result:
        """Run a command to its end."""
        return self.start(command, folder, *more, injection=injection).wait()

    def compare(self, folder: Path, command: str, products: dict[str, bytes] | None = None) -> list[str]:
        """Return how a folder differs from that of an uninterrupted chain up to this command."""
        expected, found = products or self.products, self.products_of(folder)
        wanted = [name for name in expected if CHAIN.index(_maker(name)) <= CHAIN.index(command)]
        faults = [f"{name} differs" for name in wanted if found.get(name) != expected[name]]
        return faults + [f"{path.relative_to(folder)} is a leftover" for path in folder.rglob(f"*{PARTIAL}*")]

    def _write_corpus(self) -> None:
        text = self.folder / "text"
        text.mkdir(parents=True)
        self.folder.chmod(0o755)
        for seed, (split, count) in enumerate({"train": 240, "valid": 8, "test": 8, "other": 240, "more": 90}.items()):
            lines = sentences(count, seed)
            for side, language in enumerate(("en", "de")):
                (text / f"{split}.{language}").write_text("".join(pair[side] + "\n" for pair in lines))

    def _make_state(self, length: int) -> None:
        """Run the next command without a fault, and measure its time, file operations and files."""
        command, before = CHAIN[length], self.folder / "states" / str(length)
        before.mkdir(parents=True, exist_ok=True)
        after = self.folder / "states" / str(length + 1)
        self._import_modules(command)
        shutil.copytree(before, after, symlinks=True)
        reading, writing = os.pipe()
        injection, report = count_file_calls(writing)
        done = self.start(command, after, injection=injection, after=report).wait()
        if done.code:
            raise RuntimeError(f"{command} fails even without a fault: {done.errors}")
        self.seconds[command], self.file_calls[command] = done.seconds, int(os.read(reading, 100))
        new = (path for path in after.rglob("*") if path.is_file() and not (before / path.relative_to(after)).exists())
        self.written[command] = sorted(path.stat().st_size for path in new)
        os.close(reading)
        os.close(writing)

    def _import_modules(self, command: str) -> None:
        """Import what the next command imports while it runs, so that its other copies need not."""
        folder, modules = self.copy(command, self.folder / "modules"), self.folder / "modules.txt"
        self.start(command, folder, after=lambda: modules.write_text("\n".join(sys.modules))).wait()
        shutil.rmtree(folder)
        for name in modules.read_text().splitlines():
            if name not in sys.modules:
                with suppress(ImportError):  # a name that a package gave to something else than a module
                    import_module(name)

    def overrides(self, command: str, folder: Path) -> list[str]:
        """Return the settings of a command on the files of a folder."""
        text = self.folder / "text"
        files = [f"data.{split}=[{text}/{split}.en,{text}/{split}.de]" for split in ("train", "valid", "test")]
        files.append(f"data.mixture.more.train=[{text}/more.en,{text}/more.de]")
        own = (each.format(outputs=folder / "outputs", text=text) for each in OWN_SETTINGS.get(command, ()))
        return [*SETTINGS, *files, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs", *own]

    def _run_child(
        self,
        command: str,
        folder: Path,
        logs: Path,
        more: Sequence[str],
        injection: Injection,
        after: Callable[[], object],
    ) -> None:
        """Run the command in the child process, which ends here."""
        code = 1
        try:
            for number, name in ((1, "output"), (2, "errors")):
                os.dup2(os.open(logs / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            faulthandler.enable()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            sys.modules["__main__"] = ModuleType("__main__")  # worker processes need not import this script
            injection()
            code = _exit_code(lambda: main([command, *self.overrides(command, folder), *more]))
            after()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):  # the injected limit of files is also that of these
                    stream.flush()
            os._exit(code)

    @staticmethod
    def products_of(folder: Path) -> dict[str, bytes]:
        """Return the content of the files that must be the same bit for bit."""
        found: dict[str, bytes] = {}
        for pattern in (
            *("data/toy/*.tokens", "data/toy/*.offsets", "data/toy/*.store.json", "data/toy/*.model"),
            *("data/toy/*.en", "data/toy/*.de", f"outputs/toy/checkpoints/step-{STEPS:08}/*.model"),
            f"outputs/toy/checkpoints/step-{STEPS:08}/model.safetensors",
            *("outputs/toy/checkpoints/averaged/model.safetensors", "outputs/toy/eval/test.hyp.txt"),
            *("outputs/translated.txt", "outputs/made/train-*"),
        ):
            found |= {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(pattern)}
        metrics, scores = folder / "outputs/toy/metrics.jsonl", folder / "outputs/toy/eval/test.json"
        if metrics.exists():
            found["outputs/toy/metrics.jsonl"] = _losses(metrics)
        if scores.exists():
            saved = json.loads(scores.read_bytes())
            found["outputs/toy/eval/test.json"] = repr((saved["bleu"], saved["nll"])).encode()
        return found


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Return random sentence pairs, no two of which are the same."""
    random = np.random.default_rng(seed)
    words = [["the", "man", "sees", "old", "tree"], ["der", "mann", "sieht", "alten", "baum"]]
    chosen = [random.integers(0, 5, random.integers(3, 9)) for _ in range(count)]
    return [
        (f"{number} " + " ".join(words[0][w] for w in row), " ".join(words[1][w] for w in row) + f" {number}")
        for number, row in enumerate(chosen)
    ]


def _exit_code(command: Callable[[], int]) -> int:
    """Run a command, and return its exit code as the shell would see it."""
    try:
        return command()
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return int(error.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1


def _maker(product: str) -> str:
    """Return the command that writes a file."""
    makers = {"data/": "data", "translated": "translate", "/made/": "synthesize",
              "averaged": "average", "/eval/": "eval"}  # fmt: skip
    return next((command for folder, command in makers.items() if folder in product), "train")


def _losses(metrics: Path) -> bytes:
    """Return steps and losses of the training events, but not times, which differ between runs."""
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    return repr([(event["step"], event["loss"]) for event in events if event["event"] == "train"]).encode()
