"""Hydra's features on the real command line: printed settings, several jobs, own folders of settings, own code."""

import gc
import subprocess
import sys
from pathlib import Path
from weakref import WeakSet

import pytest
import yaml

from nmt.cli import main
from nmt.config.compose import CONFIG_DIR, compose, options, parse
from nmt.config.registry import load
from nmt.config.saved import flatten, from_yaml, to_yaml
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from tests.integration.toy import call

GLOBAL = "# @package _global_\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory."""
    folder = tmp_path / "here with a space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv(CONFIG_DIR, "")
    return folder


def write(folder: Path, **texts: str) -> Path:
    """Write files of settings: `model_mine` is model/mine.yaml."""
    for name, text in texts.items():
        path = folder / f"{name.replace('_', '/', 1)}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def nmt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nmt", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_cfg_job_prints_the_settings_and_makes_no_folder(here: Path) -> None:
    words = ["experiment=demo", "training.steps=7"]
    done = nmt(here, "train", *words, "--cfg", "job", "--resolve")
    assert (done.returncode, done.stderr) == (0, "")
    assert flatten(yaml.safe_load(done.stdout)) == flatten(yaml.safe_load(to_yaml(compose(words))))
    assert list(here.iterdir()) == []


def test_each_failed_job_is_one_line_and_the_others_run_with_settings_of_ones_own(here: Path) -> None:
    write(here / "mine", experiment_small=f"{GLOBAL}defaults: [demo]\nname: small\n")
    done = call(["describe", "experiment=small", "--config-dir", "mine", "-m", "model.heads=2,3,4,5"])
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"nmt: model.heads={heads}: model.heads={heads} does not divide model.d_model=128: choose a number that does, "
        "or set model.d_k and model.d_v"
        for heads in (3, 5)
    ]
    named = [line.partition(",")[0] for line in done.stdout.splitlines() if line.startswith("small")]
    assert named == ["small-model.heads_2", "small-model.heads_4"]
    assert {each.name for each in here.iterdir()} == {"mine", "outputs"}


def test_a_failed_job_keeps_nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model: ...

    alive, before = WeakSet[Model](), list[int]()

    def fail(_: Config) -> None:
        gc.collect()
        before.append(len(alive))
        model = Model()
        alive.add(model)
        try:
            raise MemoryError
        except MemoryError as error:
            raise UserError("it is too large") from error

    monkeypatch.setattr("nmt.commands.describe.run", fail)
    assert main(["describe", "-m", "experiment=demo", "decoding.beam=1,2,3"]) == 2
    assert before == [0, 0, 0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["experiment=demo", "training.steps=9", "seed=1,2", "decoding.beam=1,4"],
            [(f"demo-seed_{seed}", "demo") for seed in (1, 1, 2, 2)],
        ),
        (["experiment=demo,multi30k"], [("demo", "demo"), ("multi30k", "multi30k")]),
        (
            ["experiment=demo,multi30k", "name=mine"],
            [("mine-experiment_demo", "demo"), ("mine-experiment_multi30k", "multi30k")],
        ),
    ],
)
def test_jobs_are_named_after_the_values_that_change_what_they_learn(
    words: list[str], expected: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Config] = []
    monkeypatch.setattr("nmt.commands.describe.run", seen.append)
    assert main(["describe", "-m", *words]) == 0
    assert [(config.name, config.data.corpus) for config in seen] == expected


def test_paths_in_the_home_need_no_quotes() -> None:
    line = parse(["data.train=[~/a.en,~/b c.de]", "input=~/a", "output='~/b'", "name=a~b"])
    assert line.settings == ["data.train=['~/a.en','~/b c.de']", "input='~/a'", "output='~/b'", "name=a~b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cfg", "jobs"], "choose from"),
        (["--info", "experiment=demo"], "choose from"),
        (["--cfg", "job", "training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["-m", "seed=1,2", "training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["-m", "experiment=demo,multi30"], "did you mean multi30k?"),
        (["seed=1,2"], "add --multirun"),
        (["--config-dir", "nosuch"], "there is no folder"),
        (["--steps=3"], "settings are written key=value, without dashes"),
        (["-m", "hydra/launcher=nosuch", "seed=1,2"], "adds joblib, submitit_local, submitit_slurm"),
        (["experiment=typo"], "there is no setting training.stepz; did you mean training.steps?"),
        (["experiment=bare"], "make `# @package _global_` the first line"),
        (["experiment=other"], "nosuch"),
        (["experiment=open"], "open.yaml"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        here / "conf",
        experiment_typo=f"{GLOBAL}training:\n  stepz: 7\n",
        experiment_bare="training:\n  steps: 7\n",
        experiment_other=f"{GLOBAL}defaults:\n  - nosuch\n",
        experiment_open=f"{GLOBAL}name: [1\n",
    )
    assert main(["describe", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_own_files_are_chosen_by_name_and_win(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = f"{GLOBAL}defaults:\n  - wmt14_en_de_big\nname: mine\n"
    write(
        here / "conf", experiment_mine=mine, experiment_demo=f"{GLOBAL}training:\n  steps: 3\n", model_slim="d_ff: 32\n"
    )
    write(here / "conf", config="db: mysql\n", db_mysql="host: localhost\n")  # of another program
    config = compose(["experiment=mine", "model=slim"])
    assert (config.name, config.model.d_model, config.model.d_ff) == ("mine", 512, 32)
    assert compose(["experiment=mine"]).model.d_model == 1024
    assert compose(["experiment=demo"]).training.steps == 3
    assert {"mine", "demo"} <= {*options("experiment")}
    assert compose([]) == Config()
    monkeypatch.setenv(CONFIG_DIR, str(write(tmp_path / "named", experiment_demo=f"{GLOBAL}training:\n  steps: 1\n")))
    assert compose(["experiment=demo"]).training.steps == 1
    assert main(["train", "--help"]) == 0
    assert ", mine, " in capsys.readouterr().out


OWN_CODE = """
from nmt.training.optimizer import adam

def lion(model, config, precision):
    print("a lion", flush=True)
    return adam(model, config, precision)
"""


def test_code_of_the_user_is_taken_from_the_command_line_and_own_files_only(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "zoo.py").write_text(OWN_CODE, encoding="utf-8")
    monkeypatch.setattr("sys.path", [*sys.path])
    for code in ("zoo:tiger", ":lion", "..zoo:lion"):
        with pytest.raises(ConfigError, match="write it as module:name"):
            load("training.optimizer", compose([f"training.optimizer={code}"]).training.optimizer)
    with pytest.raises(ConfigError, match=r"training\.optimizer=zoo:lion names code, and came with a file"):
        load("training.optimizer", from_yaml("training: {optimizer: 'zoo:lion'}").training.optimizer)
    write(here / "conf", training_mine="optimizer: zoo:lion\n")
    assert load("training.optimizer", compose(["training=mine"]).training.optimizer).__name__ == "lion"
