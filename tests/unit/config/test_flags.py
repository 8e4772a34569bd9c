"""Hydra's flags on the command line: what they print, and what cannot work."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.flags import parse
from nmt.config.saved import flatten, to_yaml
from nmt.config.tree import Config


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Undo what Hydra changes in logging, which would write to the closed streams of this test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_paths_in_the_home_need_no_quotes() -> None:
    line = parse(["data.train=[~/a.en,~/b c.de]", "input=~/a", "output='~/b'", "name=a~b"])
    assert line.overrides == ["data.train=['~/a.en','~/b c.de']", "input='~/a'", "output='~/b'", "name=a~b"]


def test_flags_may_stand_anywhere() -> None:
    line = parse(["a=1", "-m", "b=2", "--config-dir", "here", "c=3"])
    assert (line.overrides, line.flags.config_dir, line.is_multirun) == (["a=1", "b=2", "c=3"], "here", True)


def test_cfg_job_prints_the_settings_that_the_command_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["experiment=demo", "training.steps=7"]
    shown = yaml.safe_load(said(capsys, "train", *words, "--cfg", "job", "--resolve"))
    assert flatten(shown) == flatten(yaml.safe_load(to_yaml(compose(words))))


def test_a_package_of_the_settings_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "train", "-c", "job", "-p", "model.norm") == "layer\n"
    assert said(capsys, "train", "-c", "job", "-p", "tracking").startswith("# @package tracking\n")


def test_overrides_for_hydra_are_shown_as_hydra_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "train", "--cfg", "hydra", "-p", "hydra.verbose", "hydra.verbose=true") == "True\n"
    assert "hydra:\n" in said(capsys, "train", "--cfg", "all")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--info", "searchpath"], "| main "),
        (["--info", "defaults", "experiment=multi30k"], "| experiment/multi30k "),
        (["--info", "defaults-tree"], "experiment: wmt14_en_de_base"),
    ],
)
def test_hydra_describes_itself(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in said(capsys, "train", *words)


def test_a_pager_that_has_ended_is_no_error() -> None:
    command = [sys.executable, "-m", "nmt", "train", "--info", "defaults"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_run_accepts_overrides_for_hydra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Config] = []
    monkeypatch.setattr("nmt.commands.describe.run", seen.append)
    assert main(["describe", "+hydra.job.env_set.X=1", "training.steps=3"]) == 0
    assert seen == [compose(["training.steps=3"])]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cfg", "jobs"], "choose from"),
        (["--cfg", "job", "training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["--cfg", "job", "-p", "trainig"], "--package trainig: there is no setting trainig; did you mean training?"),
        (["--cfg", "job", "--info", "defaults"], "Only one of"),
        (["--resolve"], "--cfg job"),
        (["--config-dir", "nosuch"], "there is no folder"),
        (["--config-dir"], "expected one argument"),
        (["--config-path", "x"], "--config-dir FOLDER puts yours before them"),
        (["--config-name", "x"], "experiment=NAME"),
        (["--experimental-rerun", "x"], "may run any code"),
        (["-sc", "install=bash"], "not commands"),
        (["--hydra-help"], "`nmt --help`"),
        (["--steps=3"], "--steps=3 is not a setting: settings are written key=value, without dashes"),
        (["hydra.nosuch=1"], "nosuch"),
        (["-m", "hydra/launcher=nosuch", "seed=1,2"], "choose from basic, joblib, submitit_local, submitit_slurm"),
        (["-m", "hydra/sweeper=nosuch", "seed=1,2"], "choose from basic, search"),
        (["hydra.run.dir=X"], "hydra.run.dir=X has no effect"),
        (["--", "seed=3"], "-- has no meaning here"),
        (["-m", "model.dropout=interval(0,1)"], "needs a search"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
