"""make and scripts/launch.py pass ARGS on word by word, never execute it, and start one process per GPU."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
TARGETS = re.findall(r"^([a-z0-9-]+):.*## ", (TOP / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
OWN = {"help", "setup", "wheels", "lock", "all", "lint", "format", "clean"}
"""Targets that do not start the launcher."""
CHAIN = ["data", "train", "average", "eval", "report"]
HOSTILE = """name=x; touch ran `touch ran` $(shell touch ran) $$(touch ran) $(touch ran) | touch ran && touch ran
    $(eval X := $(shell touch ran)) ${oc.env:HOME} "$(shell touch ran)" '$(touch ran)' > ran c=[d,e] * # % $@ \\$$"""
NOTE = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import json, os, sys
with open({notes!r}, "a", encoding="utf-8") as notes:
    print(json.dumps([{name!r}, sys.argv[1:], os.environ.get("ARGS")]), file=notes)
sys.exit({code})
"""
"""A program that notes how it was started: a shell script too, because `#!` cannot name a path with spaces."""
TORCH = {
    "torch/__init__.py": "class cuda:\n    device_count = lambda: {gpus}\n",
    "torch/distributed/elastic/multiprocessing/__init__.py": "class SignalException(Exception): pass\n",
    "torch/distributed/elastic/multiprocessing/errors.py": "class ChildFailedError(Exception): pass\n",
    "torch/distributed/run.py": """
import json
def main(words):
    with open({notes!r}, "a", encoding="utf-8") as notes:
        print(json.dumps(["torchrun", words, None]), file=notes)
""",
}
"""Stubs for what the launcher imports of PyTorch."""
Note = tuple[str, list[str], str | None]
"""A program, its arguments, and ARGS in its environment."""


def note_taker(path: Path, notes: Path, code: int = 0) -> None:
    name = path.parent.name if path.stem == "__main__" else path.stem
    path.parent.mkdir(parents=True, exist_ok=True)
    text = NOTE.format(python=sys.executable, notes=str(notes), name=name, code=code)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def noted(notes: Path) -> list[Note]:
    return [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []


def make(folder: Path, *words: str, **environment: str) -> list[Note]:
    """Run make in an empty folder, with stubs for the programs it would start; return what they noted."""
    notes, programs = folder / "notes", folder / "stand ins"
    for program in (programs / "python", folder / "scripts" / "lock", folder / ".ci" / "wheel"):
        note_taker(program, notes)
    shutil.copy(TOP / "Makefile", folder)
    (folder / "requirements.lock").touch()  # what `make wheels` reads, and where it writes
    (folder / ".wheels").mkdir(exist_ok=True)
    command = ["make", *words, f"BIN={programs}", "READY=", f"PYTHON={programs}/python"]
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True)
    return noted(notes)


def targets(notes: list[Note]) -> list[str]:
    """Return the targets that the launcher was started with."""
    return [words[-1] for _, words, _ in notes if words[:1] == ["scripts/launch.py"]]


@pytest.mark.parametrize("by_environment", [False, True], ids=["command line", "environment"])
def test_make_passes_args_on_unchanged_and_executes_nothing(tmp_path: Path, by_environment: bool) -> None:
    goals = [target for target in TARGETS if target != "all"]
    notes = make(tmp_path, *goals, ARGS=HOSTILE) if by_environment else make(tmp_path, *goals, f"ARGS={HOSTILE}")
    assert targets(notes) == [goal for goal in goals if goal not in OWN]
    assert all(arguments == HOSTILE for *_, arguments in notes)
    assert not (tmp_path / "ran").exists()


def test_make_all_runs_the_chain_in_order_and_typos_in_variables_are_refused(tmp_path: Path) -> None:
    assert targets(make(tmp_path, "-j4", "all", "ARGS=name=x")) == CHAIN
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make(tmp_path, "describe", "experiment=demo")
    assert 'is no variable of this Makefile: write settings as ARGS="experiment=demo"' in str(refused.value.stderr)


def launched(folder: Path, target: str, arguments: str, *words: str, gpus: int | str = 0) -> tuple[int, list[str], str]:
    """Run the launcher with stubs for what it starts; return its exit code, the command it started, and errors."""
    notes, scripts = folder / "notes", folder / "scripts"
    notes.unlink(missing_ok=True)
    note_taker(folder / "nmt" / "__main__.py", notes, code=7)
    (folder / "nmt" / "__init__.py").touch()
    scripts.mkdir(exist_ok=True)
    shutil.copy(TOP / "scripts" / "launch.py", scripts)
    for name, text in TORCH.items():
        (scripts / name).parent.mkdir(parents=True, exist_ok=True)
        (scripts / name).write_text(text.format(gpus=gpus, notes=str(notes)), encoding="utf-8")
    environment = {**os.environ, "ARGS": arguments}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, str(scripts / "launch.py"), target, *words]
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    started = [word for program, words, _ in noted(notes) for word in (program, *words)]
    return done.returncode, started, done.stderr


def test_args_are_split_by_the_shells_quoting_rules_only(tmp_path: Path) -> None:
    arguments = """data.train=[a,b]\t input="a b.txt" name='x y'z \\\n o=$HOME $(touch ran) `touch ran`; * #"""
    words = [
        "data.train=[a,b]",
        "input=a b.txt",
        "name=x yz",
        "o=$HOME",
        "$(touch",
        "ran)",
        "`touch",
        "ran`;",
        "*",
        "#",
    ]
    assert launched(tmp_path, "data", arguments)[:2] == (7, ["nmt", "data", *words])
    assert not (tmp_path / "ran").exists()
    error = "launch: ARGS cannot be split into words (No closing quotation): close or escape the quotation mark\n"
    assert launched(tmp_path, "data", "name='x") == (2, [], error)


@pytest.mark.parametrize(
    ("target", "words", "gpus", "processes"),
    [
        ("train", ["data.train=[a,b]"], 8, 8),
        ("train", ["-m", "runtime.device=cpu", "seed=1,2"], 8, 1),
        ("train", ["-m", "hydra/launcher=submitit_slurm", "seed=1,2"], 8, 1),
        ("train", ["experiment=own", "data.train=[a,b]"], 8, 8),
        ("eval", ["experiment=multi30k"], 8, 8),
        ("data", [], "1 / 0", 1),
    ],
    ids=str,
)
def test_each_gpu_gets_a_process(
    tmp_path: Path, target: str, words: list[str], gpus: int | str, processes: int
) -> None:
    torchrun = ["torchrun", "--standalone", f"--nproc-per-node={processes}", "-m"] if processes > 1 else []
    assert launched(tmp_path, target, "", *words, gpus=gpus)[1] == [*torchrun, "nmt", target, *words]


@pytest.mark.parametrize("words", [["training.stepz=3"], ["--config-dir=none"]])
def test_wrong_settings_start_no_processes(tmp_path: Path, words: list[str]) -> None:
    code, started, errors = launched(tmp_path, "train", "", *words, gpus=8)
    assert (code, started, errors.count("\n")) == (2, [], 1)


@pytest.mark.slow
def test_an_error_of_all_processes_is_one_line_before_that_of_torchrun(tmp_path: Path) -> None:
    two = "import sys; sys.path.insert(0, 'scripts'); import launch; launch.gpu_count = lambda: 2; launch.main()"
    command = [sys.executable, "-c", two, "train", f"paths.data={tmp_path}"]
    done = subprocess.run(command, cwd=TOP, check=False, capture_output=True, text=True)
    ours, theirs = done.stderr.splitlines()
    assert ours.startswith("nmt: ")
    assert "failed (exitcode: 2) local_rank: 0" in theirs
    assert done.returncode == 2
