"""The stage that builds the wheel and uses it as its users do: outside the clone, and without a right to change it."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from test_all.packages import LOCK, PIP
from test_all.small_text import sentence_pairs, write_pairs
from test_all.stages import ROOT, Context, StageError

SMALL = (
    "training.steps=6",
    "training.save_every=2",
    "training.valid_every=2",
    "evaluation.splits=[test]",
    "decoding.beam=1",
    "decoding.extra_length=2",
)
"""Settings of a demo that takes seconds."""
LOAD = """
from pathlib import Path
import nmt
assert Path(nmt.__file__).is_relative_to(Path.cwd().parent), nmt
print("translated", nmt.load("outputs/demo").translate(["a dog"])[0].text)
"""
SERVE = """
import subprocess, sys, urllib.parse, urllib.request
command = [sys.argv[1], "serve", "experiment=demo", "serve.port=0", "serve.processes=1"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    address = next(line for line in server.stdout if line.startswith("serving ")).split()[-1]
    query = urllib.parse.urlencode({"q": "a dog", "source": "en", "target": "de"})
    print(urllib.request.urlopen(f"{address}/translate?{query}", data=b"").read().decode())
    server.terminate()
sys.exit(server.returncode)
"""
"""Start the server, translate with it, and end it."""
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Takes from root the right to write where nobody may."""


def run_wheel(context: Context) -> None:
    """Build the wheel, install it in a path with spaces, and use it alone."""
    folder = context.folder / "a path with spaces"
    work = folder / "work"
    work.mkdir(parents=True)
    context.say("building the wheel")
    build = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", context.folder)
    context.run(sys.executable, *build, ROOT)
    (wheel,) = context.folder.glob("nmt_transformer-*.whl")
    environment = folder / "environment"
    context.run(sys.executable, "-m", "venv", environment)
    programs = environment / "bin"
    context.say("installing it, read-only")
    context.run(programs / "python", *PIP, "--constraint", LOCK, f"{wheel}[serve]")
    context.run("chmod", "-R", "a-w", environment)
    try:
        before = _without_rights(context, environment)
        _use_commands(context, before, programs, work)
        _use_model(context, before, programs, work)
    finally:
        context.run("chmod", "-R", "u+w", environment)


def _without_rights(context: Context, environment: Path) -> Sequence[str]:
    """Return the words before a command that keep it from writing to the environment."""
    before: Sequence[str] = ()
    if os.geteuid() == 0:
        if shutil.which(WITHOUT_RIGHTS[0]) is None:
            context.skipped["a read-only environment: root needs setpriv, of util-linux"] += 1
            return ()
        before = WITHOUT_RIGHTS
    context.run(*before, "sh", "-c", '! touch "$0/new" 2>/dev/null', environment)
    return before


def _use_commands(context: Context, before: Sequence[str], programs: Path, work: Path) -> None:
    """Run the commands that need no model."""
    nmt: tuple[str | Path, ...] = (*before, programs / "nmt")
    context.say("nmt --help, table3 --help, doctor, and data of one's own")
    if "usage" not in context.run(*nmt, "--help", cwd=work).lower():
        raise StageError("nmt --help prints no usage")
    if "table3.scale" not in context.run(*nmt, "table3", "--help", cwd=work):
        raise StageError("nmt table3 --help does not describe its settings")
    if "free disk" not in context.run(*nmt, "doctor", cwd=work):
        raise StageError("nmt doctor does not describe the machine")
    write_pairs(work / "own.en", work / "own.de", sentence_pairs(500))
    own = ("experiment=own", "data.train=[own.en,own.de]", "tokenizer.vocab_size=300")
    context.run(*nmt, "data", *own, cwd=work)
    if not (work / "data" / "own" / "manifest.json").is_file():
        raise StageError("nmt data experiment=own wrote no manifest")
    if "`nmt train`" not in context.run(*nmt, "translate", "experiment=own", cwd=work, codes=(2,)):
        raise StageError("the message about a missing model does not name nmt")


def _use_model(context: Context, before: Sequence[str], programs: Path, work: Path) -> None:
    """Run the demo, and translate with its model by each interface."""
    nmt: tuple[str | Path, ...] = (*before, programs / "nmt")
    context.say("nmt demo, translate and serve; import nmt")
    said = context.run(*nmt, "demo", *SMALL, cwd=work)
    if "make translate" in said or "nmt translate" not in said:
        raise StageError("the demo names make, which is not there")
    if not (work / "outputs" / "demo" / "report.html").is_file():
        raise StageError("the demo wrote no report")
    lines = "the man sees a dog\n\na dog\n"
    translated = context.run(*nmt, "translate", "experiment=demo", cwd=work, text=lines)
    loaded = context.run(*before, programs / "python", "-c", LOAD, cwd=work)
    served = context.run(*before, programs / "python", "-c", SERVE, programs / "nmt", cwd=work)
    if translated.count("\n") < lines.count("\n") or "translated" not in loaded or "translatedText" not in served:
        raise StageError("a translation is missing")
