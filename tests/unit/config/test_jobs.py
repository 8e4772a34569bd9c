"""Hydra on the real command line: what its flags print, several jobs by one command, and code of the user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.jobs import parse
from nmt.config.saved import flatten, to_yaml
from nmt.config.tree import Config
from nmt.errors import ConfigError


def nmt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nmt", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_cfg_job_prints_the_settings_and_makes_no_folder(tmp_path: Path) -> None:
    words = ["experiment=demo", "training.steps=7"]
    done = nmt(tmp_path, "train", *words, "--cfg", "job", "--resolve")
    assert (done.returncode, done.stderr) == (0, "")
    assert flatten(yaml.safe_load(done.stdout)) == flatten(yaml.safe_load(to_yaml(compose(words))))
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_in_a_folder_of_ones_own_is_found_for_each_value(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "experiment" / "small.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# @package _global_\ndefaults: [demo]\nname: small\n")
    words = ["describe", "experiment=small", "--config-dir", "mine", "-m", "model.dropout=0.1,0.3"]
    done = nmt(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    named = [line.partition(",")[0] for line in done.stdout.splitlines() if line.startswith("small")]
    assert named == ["small-model.dropout_0.1", "small-model.dropout_0.3"]
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_a_failed_job_is_one_line_and_the_others_run(tmp_path: Path) -> None:
    done = nmt(tmp_path, "describe", "-m", "experiment=demo", "model.heads=3,4", "describe.device=h100")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "nmt: model.heads=3: model.heads=3 does not divide model.d_model=128: choose a number that does, or set "
        "model.d_k and model.d_v"
    ]
    assert "demo-model.heads_4\n" in done.stdout
    assert list(tmp_path.iterdir()) == []


def names(words: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[tuple[str, str]]:
    """Return the names of the runs and corpora of a sweep."""
    seen: list[Config] = []
    monkeypatch.setattr("nmt.commands.describe.run", seen.append)
    assert main(["describe", "-m", f"paths.outputs={folder}", *words]) == 0
    return [(config.name, config.data.corpus) for config in seen]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["experiment=demo", "training.steps=9", "seed=1,2"], [("demo-seed_1", "demo"), ("demo-seed_2", "demo")]),
        (["experiment=demo", "decoding.beam=1,4"], [("demo", "demo")] * 2),
        (["experiment=demo,multi30k"], [("demo", "demo"), ("multi30k", "multi30k")]),
        (["name=a", "experiment=demo,multi30k"],
         [("a-experiment_demo", "demo"), ("a-experiment_multi30k", "multi30k")]),
        (["experiment=demo", "tokenizer.vocab_size=90,91", "++data.weight=1"],
         [(f"demo-tokenizer.vocab_size_{size}",) * 2 for size in (90, 91)]),
    ],
)  # fmt: skip
def test_jobs_are_named_after_the_values_that_change_what_they_learn(
    words: list[str], expected: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert names(words, monkeypatch, tmp_path) == expected


def test_long_and_unusual_values_give_short_plain_and_different_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["name=folder/base", f"data.hub_dataset=a/{'x' * 90},a@{'x' * 91}"]
    found = [name for name, _ in names(words, monkeypatch, tmp_path)]
    assert len({*found}) == 2
    assert all(compose([f"name={name}"]).name == name for name in found)  # as users type them


def test_an_override_of_hydra_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[tuple[Config, str]] = []

    def run(config: Config) -> None:
        seen.append((config, os.environ["X"]))

    monkeypatch.setattr("nmt.commands.describe.run", run)
    assert main(["describe", "+hydra.job.env_set.X=1", "training.steps=3"]) == 0
    assert seen == [(compose(["training.steps=3"]), "1")]
    assert list(tmp_path.iterdir()) == []


def test_paths_in_the_home_need_no_quotes() -> None:
    line = parse(["data.train=[~/a.en,~/b c.de]", "input=~/a", "output='~/b'", "name=a~b"])
    assert line.settings == ["data.train=['~/a.en','~/b c.de']", "input='~/a'", "output='~/b'", "name=a~b"]


def test_a_pager_that_has_ended_is_no_error() -> None:
    command = [sys.executable, "-m", "nmt", "train", "--info", "defaults"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cfg", "jobs"], "choose from"),
        (["--cfg", "job", "training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["-m", "seed=1,2", "training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["-m", "experiment=demo,multi30"], "did you mean experiment=multi30k?"),
        (["seed=1,2"], "add -m for a run with each"),
        (["--cfg", "job", "--info", "defaults"], "Only one of"),
        (["--config-dir", "nosuch"], "there is no folder"),
        (["--experimental-rerun", "x"], "unrecognized arguments"),
        (["--steps=3"], "settings are written key=value, without dashes"),
        (["hydra.nosuch=1"], "nosuch"),
        (["-m", "hydra/launcher=nosuch", "seed=1,2"], "choose from basic, joblib, submitit_local, submitit_slurm"),
        (["-m", "model.dropout=interval(0,1)"], "needs a search"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["describe", f"paths.outputs={tmp_path}", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "experiment=demo"], "-- is not a setting"),
        (["--hydra-help"], "unrecognized arguments: --hydra-help"),
    ],
)
def test_words_that_could_not_work_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(words)
