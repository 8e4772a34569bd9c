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
LAUNCH = TOP / "scripts" / "launch.py"
MAKEFILE = TOP / "Makefile"
TARGETS = re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
LAUNCHED = sorted({*TARGETS} - {"help", "setup", "wheels", "lock", "all", "lint", "format", "clean"})
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

Note = tuple[str, list[str], str | None]
"""A program, its arguments, and ARGS in its environment."""


def note_taker(path: Path, notes: Path, code: int = 0) -> None:
    """Write a program or a module that only notes how it was started.

    It is a shell script as well, because the first line of a Python script cannot name a path with spaces.
    """
    name = path.parent.name if path.stem == "__main__" else path.stem
    path.parent.mkdir(parents=True, exist_ok=True)
    text = NOTE.format(python=sys.executable, notes=str(notes), name=name, code=code)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def noted(notes: Path) -> list[Note]:
    return [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []


def make(folder: Path, *words: str, by_environment: str | None = None) -> list[Note]:
    """Run make in an empty folder, with stubs for the programs it would start; return what they noted."""
    notes, programs = folder / "notes", folder / "stand ins"
    for program in (programs / "python", folder / "scripts" / "lock", folder / ".ci" / "wheel"):
        note_taker(program, notes)
    shutil.copy(MAKEFILE, folder)
    (folder / "requirements.lock").touch()  # what `make wheels` reads, and where it writes
    (folder / ".wheels").mkdir(exist_ok=True)
    command = ["make", *words, f"BIN={programs}", "READY=", f"PYTHON={programs}/python"]
    environment = dict(os.environ) | ({} if by_environment is None else {"ARGS": by_environment})
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return noted(notes)


def targets(notes: list[Note]) -> list[str]:
    """Return the targets that the launcher was started with."""
    return [words[-1] for _, words, _ in notes if words[:1] == ["scripts/launch.py"]]


@pytest.mark.parametrize("goals", [["all"], [target for target in TARGETS if target != "all"]], ids=["all", "others"])
@pytest.mark.parametrize("by_environment", [False, True], ids=["command line", "environment"])
def test_make_passes_args_on_unchanged_and_executes_nothing(
    tmp_path: Path, goals: list[str], by_environment: bool
) -> None:
    notes = (
        make(tmp_path, *goals, by_environment=HOSTILE) if by_environment else make(tmp_path, *goals, f"ARGS={HOSTILE}")
    )
    assert targets(notes) == (CHAIN if goals == ["all"] else [goal for goal in goals if goal in LAUNCHED])
    assert all(arguments == HOSTILE for *_, arguments in notes)
    assert not (tmp_path / "ran").exists()


def test_make_all_runs_the_chain_in_order(tmp_path: Path) -> None:
    assert targets(make(tmp_path, "-j4", "all", "ARGS=name=x")) == CHAIN


def test_the_help_of_make_fits_a_screen() -> None:
    lines = subprocess.run(
        ["make", "-s", "help"], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("word", ["experiment=demo", "training.steps=5", "args=name=x", "input=a b"])
def test_make_refuses_what_it_would_ignore(tmp_path: Path, word: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make(tmp_path, "describe", word)
    assert refused.value.returncode == 2
    assert f'is no variable of this Makefile: write settings as ARGS="{word}"' in str(refused.value.stderr)
    assert noted(tmp_path / "notes") == []


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


def launched(
    folder: Path, target: str, arguments: str, *words: str, gpus: int | str = 0, code: int = 7
) -> tuple[int, list[list[str]], str]:
    """Run the launcher with stubs for the programs it starts; return its exit code, what it started, and errors."""
    notes, scripts = folder / "notes", folder / "scripts"
    for program in ("nmt/__main__.py", "pytest.py", "scripts/bench/__main__.py"):
        note_taker(folder / program, notes, code)
    (folder / "nmt" / "__init__.py").touch()
    shutil.copy(LAUNCH, scripts)
    for name, text in TORCH.items():
        (scripts / name).parent.mkdir(parents=True, exist_ok=True)
        (scripts / name).write_text(text.format(gpus=gpus, notes=str(notes)), encoding="utf-8")
    environment = {**os.environ, "ARGS": arguments}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, str(scripts / "launch.py"), target, *words]
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert all(left_over is None for *_, left_over in noted(notes))
    return done.returncode, [[program, *words] for program, words, _ in noted(notes)], done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", []),
        ("data.train=[a,b] seed=1,2", ["data.train=[a,b]", "seed=1,2"]),
        ("a=1\n    b=2\t c=3 \\\n d=4", ["a=1", "b=2", "c=3", "d=4"]),
        ("""input="a b.txt" name='x y'z""", ["input=a b.txt", "name=x yz"]),
        ("name=${oc.env:HOME} output=$HOME", ["name=${oc.env:HOME}", "output=$HOME"]),
        ("name=x; touch ran", ["name=x;", "touch", "ran"]),
        ("$(touch ran) `touch ran` * #", ["$(touch", "ran)", "`touch", "ran`", "*", "#"]),
    ],
)
def test_args_are_split_by_the_shells_quoting_rules_only(tmp_path: Path, arguments: str, words: list[str]) -> None:
    assert launched(tmp_path, "data", arguments)[:2] == (7, [["nmt", "data", *words]])
    assert not (tmp_path / "ran").exists()


def test_unclosed_quotation_mark_is_an_error_and_nothing_starts(tmp_path: Path) -> None:
    code, started, errors = launched(tmp_path, "data", "name='x")
    assert (code, started) == (2, [])
    assert (
        errors == "launch: ARGS cannot be split into words (No closing quotation): close or escape the quotation mark\n"
    )


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("target", ["train", "eval", "synthesize"])
def test_at_most_one_gpu_starts_one_process(tmp_path: Path, target: str, gpus: int) -> None:
    started = launched(tmp_path, target, "seed=2", "data.train=[a,b]", gpus=gpus)
    assert started[:2] == (7, [["nmt", target, "data.train=[a,b]", "seed=2"]])


@pytest.mark.parametrize("words", [["data.train=[a,b]"], ["-m", "seed=1,2"], ["-m", "hydra/launcher=basic", "seed=1"]])
def test_each_gpu_that_torch_finds_gets_one_process(tmp_path: Path, words: list[str]) -> None:
    run = ["torchrun", "--standalone", "--nproc-per-node=8", "-m", "nmt", "train", *words]
    assert launched(tmp_path, "train", "", *words, gpus=8) == (0, [run], "")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["runtime=cpu"],
        ["-m", "runtime.device=cpu", "seed=1,2"],
        ["-m", "hydra/launcher=submitit_slurm", "seed=1,2"],
    ],
    ids=" ".join,
)
def test_help_and_runs_on_a_cpu_or_of_another_launcher_are_one_process(tmp_path: Path, words: list[str]) -> None:
    assert launched(tmp_path, "train", "", *words, gpus=8, code=0) == (0, [["nmt", "train", *words]], "")


@pytest.mark.parametrize(("target", "code"), [("data", 7), ("translate", 7), ("report", 7), ("train", 1)])
def test_only_targets_that_use_all_gpus_count_them(tmp_path: Path, target: str, code: int) -> None:
    assert launched(tmp_path, target, "", gpus="1 / 0")[0] == code


def test_small_batches_are_not_divided_between_more_gpus_than_they_can_feed(tmp_path: Path) -> None:
    code, started, errors = launched(tmp_path, "train", "experiment=multi30k", gpus=8, code=0)
    assert (code, started) == (0, [["nmt", "train", "experiment=multi30k"]])
    assert errors == (
        "launch: training on 1 of 8 GPUs: training.batch_tokens=1024 is too small for more, which need 1024 each\n"
    )
    assert "--nproc-per-node=3" in launched(tmp_path, "train", "training.batch_tokens=4000", gpus=8)[1][-1]
    assert "--nproc-per-node=8" in launched(tmp_path, "eval", "experiment=multi30k", gpus=8)[1][-1]


@pytest.mark.parametrize("words", [["training.stepz=3"], ["-m", "training.stepz=1,2"], ["--config-dir=none"]])
def test_wrong_settings_start_no_processes(tmp_path: Path, words: list[str]) -> None:
    code, started, errors = launched(tmp_path, "train", "", *words, gpus=8)
    assert (code, started, errors.count("\n")) == (2, [], 1)


TWO = "import sys; sys.path.insert(0, 'scripts'); import launch; launch.gpu_count = lambda: 2; launch.main()"
"""The launcher on a machine that seems to have two GPUs."""


def test_an_error_of_all_processes_is_one_line_before_that_of_torchrun(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO, "train", f"paths.data={tmp_path}"]
    done = subprocess.run(command, cwd=TOP, check=False, capture_output=True, text=True)
    ours, theirs = done.stderr.splitlines()
    assert "is not prepared (tokenizer): run `make data`" in ours
    assert "failed (exitcode: 2) local_rank: 0" in theirs
    assert done.returncode == 2
