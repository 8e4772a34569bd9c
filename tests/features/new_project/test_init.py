"""The project that `init` writes: its files, its experiment, and its Makefile."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.compose import compose
from nmt.features.new_project.command import FILES

SHORT = ("training.steps=4", "training.save_every=2", "averaging.last=2", "training.valid_every=4", "decoding.beam=1",
         "decoding.extra_length=0", "training.valid_sentences=8", "model.layers=1")  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a project"
    assert main(["init", f"init.folder='{folder}'"]) == 0
    monkeypatch.chdir(folder)
    return folder


def test_the_experiment_is_there_under_its_name(project: Path) -> None:
    config = compose(["experiment=mine"])
    assert config == compose(["experiment=demo", "name=mine"])


def test_no_file_is_replaced(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (project / name).read_text() for name in FILES}
    (project / "conf/experiment/mine.yaml").unlink()
    assert main(["init"]) == 2
    assert capsys.readouterr().err.startswith("nmt: Makefile exists: ")
    assert not (project / "conf/experiment/mine.yaml").exists()
    assert (project / "Makefile").read_text() == before["Makefile"]


def test_the_last_line_is_a_command_that_a_shell_understands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "init.folder='a project'"]) == 0
    assert capsys.readouterr().out.endswith("\nRun it:  cd 'a project'; nmt all experiment=mine\n")


def test_a_folder_that_cannot_be_made_is_named_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", f"init.folder='{tmp_path}/file/mine'"]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/file/mine/conf" in error
    assert error.count("\n") == 1


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_targets_are_commands(project: Path) -> None:
    def printed(*words: str) -> str:
        return subprocess.run(["make", "-n", *words], capture_output=True, text=True, check=True).stdout

    targets = printed("help").partition("make ")[2].partition(" [")[0].split("|")
    assert set(targets) <= set(COMMANDS)
    for target in targets:
        assert printed(target, "ARGS=seed=3").split() == ["nmt", target, "experiment=mine", "seed=3"]
    on_gpus = "torchrun --standalone --nproc-per-node=4 -m nmt train experiment=mine"
    assert printed("train", "GPUS=4").startswith(on_gpus)


@pytest.mark.slow
def test_the_project_runs_as_it_is(project: Path) -> None:
    paths = (os.environ.get("PYTHONPATH", ""), str(Path(main.__code__.co_filename).parents[1]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = ["make", "all", f"NMT={shlex.quote(sys.executable)} -m nmt", f"ARGS={' '.join(SHORT)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (project / "outputs/mine/eval/test.json").exists()
