"""The stage `documents`: the commands of README and docs run as they are written, in a copy with small settings."""

import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from subprocess import STDOUT, Popen
from threading import Lock

from test_all.environments import EXTRAS_PYTHON
from test_all.exclusions import reason_not_to_run, stale_exclusions
from test_all.small_clone import make_small_clone
from test_all.stages import Context, StageError, clean_environment, end_group
from test_all.statements import DOCUMENTS, Statement, statements

SERVE = "make serve"
ADDRESS = "http://127.0.0.1:5000/health"
START_SECONDS = 120
FAILURE_LINES = 15
BASH = ("bash", "-e", "-o", "pipefail", "-c")
RUNS = (
    "make all",
    'make all ARGS="experiment=multi30k"',
    'make all ARGS="experiment=own data.train=[train.en,train.de]"',
    "make demo",
)
"""What the documents take for granted: the runs of their first commands.

A document that has such a command gets the folders that FORGET names from here, if there are any.
"""
BEFORE = {
    "fine_tuning.md": (
        'make all ARGS="experiment=own name=mine data.train=[train.en,train.de]"',
        'make export ARGS="export=huggingface"',
        "mkdir models && cp -rL outputs/wmt14_en_de_base/export/huggingface* models/opus-mt-en-de",
    ),
    "mixtures.md": ("make data ARGS=\"experiment=mixture/own data.stages=['crawled until 20000','crawled main:3']\"",),
    "questions.md": (
        "make train average eval ARGS='experiment=multi30k name=mine'",
        *(
            f".venv/bin/nmt {command} -m seed=1,2,3 experiment=multi30k name=mine"
            for command in ("train", "average", "eval")
        ),
    ),
}
"""What else a document takes for granted."""
FORGET = {
    'make all ARGS="experiment=own data.': ("data/own", "outputs/own"),
    'make data train average eval ARGS="experiment=own name=tuned': ("data/news", "outputs/tuned"),
    ".venv/bin/python scripts/torchrun --standalone": ("outputs/wmt14_en_de_big",),
    'make data train average eval ARGS="experiment=multi30k training.steps=14000': ("outputs/multi30k",),
    'make train ARGS="experiment=multi30k training.steps=6000"': ("outputs/multi30k",),
    'make demo ARGS="training.steps=400"': ("outputs/demo",),
    'make synthesize ARGS="name=own input=': ("data/synthetic/own",),
}
"""Folders deleted before a command, by its beginning: what another command made, to which it is an alternative."""
ONCE = ("make table3",)
"""Commands that take minutes, on which nothing later stands: only the first document that has one runs it."""
_PORT = Lock()


def run_documents(context: Context) -> None:
    """Run the documents' commands, those of two documents at a time."""
    found = [each for document in DOCUMENTS for each in statements(document)]
    if stale := stale_exclusions(found):
        raise StageError(f"exclusions.py names commands that no document has: {stale}")
    chosen = _without_repetitions([each for each in found if not reason_not_to_run(each.text)])
    python = EXTRAS_PYTHON if EXTRAS_PYTHON.exists() else Path(sys.executable)
    clone = make_small_clone(context, python)
    for command in RUNS:
        context.say(command)
        context.run(*BASH, command, cwd=clone, environment=_environment(clone))
    by_document: dict[str, list[str]] = {}
    for each in chosen:
        by_document.setdefault(each.document, list(BEFORE.get(each.document, ()))).append(each.text)
    longest_first = sorted(by_document, key=lambda name: -len(by_document[name]))
    pool = ThreadPoolExecutor(2)
    try:
        wrong = list(
            chain(*pool.map(lambda name: run_document(context, clone, name, by_document[name]), longest_first))
        )
    finally:
        context.stop()
        pool.shutdown(cancel_futures=True)
    if wrong:
        with context.log.open("a", encoding="utf-8") as log:
            print(*wrong, sep="\n", file=log)
        raise StageError(f"{len(wrong)} of {len(chosen)} commands failed")
    context.say(f"{len(chosen)} commands ran; {len(found) - len(chosen)} repeat others or are in exclusions.py")


def _without_repetitions(found: Sequence[Statement]) -> list[Statement]:
    """Return the commands without those of ONCE that an earlier document has, whatever comment follows."""
    commands = [_command(each.text) for each in found]
    return [each for place, each in enumerate(found) if commands[place] not in (set(ONCE) & set(commands[:place]))]


def _command(text: str) -> str:
    """Return a command without the comment that follows it."""
    return text.partition("#")[0].strip()


def _environment(clone: Path) -> dict[str, str]:
    path = f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PYTHONPATH": str(clone / "src"), "PATH": path, "OMP_NUM_THREADS": "1"}


def run_document(context: Context, clone: Path, name: str, commands: Sequence[str]) -> list[str]:
    """Run the commands of a document in a copy of the clone; return a text per failed one."""
    folder = context.folder / name
    shutil.copytree(clone, folder, symlinks=True)
    own = replace(context, folder=folder, log=context.folder / f"{name}.log")
    failed = []
    with ExitStack() as stack:
        if any(each.startswith(SERVE) for each in commands):
            stack.enter_context(_PORT)
        servers = stack.enter_context(ExitStack())
        for text in commands:
            if not context.ends:
                break
            started = time.monotonic()
            own.log.write_text("", encoding="utf-8")
            forgotten = [name for start, names in FORGET.items() if text.startswith(start) for name in names]
            for old in forgotten:
                shutil.rmtree(folder / old, ignore_errors=True)
            if forgotten and _command(text) in RUNS:
                for old in forgotten:
                    shutil.copytree(clone / old, folder / old, symlinks=True)
                continue
            try:
                if text.startswith(SERVE):
                    servers.close()
                    servers.enter_context(_server(own, text))
                else:
                    own.run(*BASH, text, cwd=folder, environment=_environment(folder))
                context.say(f"{name}: {time.monotonic() - started:3.0f} s: {text.splitlines()[0][:90]}")
            except StageError as error:
                last = own.log.read_text(encoding="utf-8", errors="replace").splitlines()[-FAILURE_LINES:]
                said = next((line for line in last if line.startswith("nmt: ")), "")
                context.say(f"{name}: FAILED: {text.splitlines()[0][:90]} {said}")
                failed.append("\n".join((f"{name}: {text}", *last, str(error).partition(":")[0])))
    return failed


@contextmanager
def _server(context: Context, text: str) -> Iterator[None]:
    """Start a server, and end it with the block."""
    with context.log.open("a", encoding="utf-8") as log:
        process = Popen(
            [*BASH, text], cwd=context.folder, env=clean_environment(_environment(context.folder)), text=True,
            stdout=log, stderr=STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        ends = min(context.ends, time.monotonic() + START_SECONDS)
        while not _answers():
            if process.poll() is not None or time.monotonic() > ends:
                raise StageError("the server does not start")
            time.sleep(0.3)
        yield
    finally:
        end_group(process)
        process.wait()


def _answers() -> bool:
    try:
        with urllib.request.urlopen(ADDRESS, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
