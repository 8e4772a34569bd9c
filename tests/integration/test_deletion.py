"""Each feature can be deleted, and all of them together: the core works without, and does not know their names."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nmt
from nmt.config.conf_folder import conf_folder
from nmt.discovery import features

SOURCE = Path(nmt.__file__).parent
DELETED = {**{name: [name] for name in features()}, "all": list(features())}
CHAIN = ("data", "train", "average", "eval")
SHORT = ("training.steps=4", "training.save_every=2", "averaging.last=2", "training.valid_every=4")
SEVERAL_COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from nmt.cli import main

outputs = []
for words in json.load(sys.stdin):
    with redirect_stdout(io.StringIO()) as output:
        try:
            code = main(words)
        except SystemExit as ending:
            code = ending.code
    assert not code, words
    outputs.append(output.getvalue())
print(json.dumps(outputs))
"""
"""Runs commands in one process, which imports everything only once, and prints their outputs."""


@pytest.fixture(params=list(DELETED.values()), ids=list(DELETED))
def remaining(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a copy of the package, without some features."""
    shutil.copytree(SOURCE, tmp_path / "src" / "nmt")  # with its bytecode, which remains valid
    shutil.copytree(conf_folder(), tmp_path / "conf")
    for name in request.param:
        shutil.rmtree(tmp_path / "src" / "nmt" / "features" / name)
    return tmp_path


def run(folder: Path, *commands: list[str]) -> list[str]:
    """Return the output of each command."""
    done = python(folder, "-c", SEVERAL_COMMANDS, question=json.dumps(commands))
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def python(folder: Path, *words: str, question: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *words], input=question, capture_output=True, text=True, check=False, env=environment,
        cwd=folder, timeout=240,
    )  # fmt: skip


@pytest.mark.slow
def test_the_paper_s_path_works_without_a_feature(
    remaining: Path, settings: list[str], request: pytest.FixtureRequest
) -> None:
    deleted = request.node.callspec.params["remaining"]
    paths = [f"paths.data={remaining / 'data'}", f"paths.outputs={remaining / 'outputs'}"]
    chain = [[command, *settings, *SHORT, *paths] for command in CHAIN]
    listed, helped, helped_train, described, *_ = run(
        remaining, ["features"], ["--help"], ["train", "--help"], ["describe", "describe.device=h100"], *chain
    )
    assert not set(deleted) & {line.partition(": ")[0] for line in listed.splitlines()}
    commands = [command for name in deleted for command in features()[name].commands]
    assert not any(f"\n  {command} " in helped for command in commands)
    assert "training.steps" in helped_train
    assert "parameters" in described
    assert list((remaining / "outputs").glob("*/eval/test.json"))


@pytest.mark.parametrize("remaining", [list(features())], indirect=True, ids=["all"])
def test_an_experiment_that_needs_a_deleted_feature_is_refused_in_one_line(remaining: Path) -> None:
    done = python(remaining, "-m", "nmt", "describe", "experiment=multi30k")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "training.muon_rate" in done.stderr


def test_no_module_of_the_core_names_a_module_of_a_feature() -> None:
    core = [file for file in SOURCE.rglob("*.py") if "features" not in file.relative_to(SOURCE).parts[:1]]
    texts = {file: file.read_text(encoding="utf-8") for file in core}
    named = [(file.name, name) for name in features() for file, text in texts.items() if f"nmt.features.{name}" in text]
    assert named == []
