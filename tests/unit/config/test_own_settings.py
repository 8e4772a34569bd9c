"""Settings in the user's own folders: which folder wins, and mistakes in them."""

from pathlib import Path

import pytest

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.conf_folder import CONFIG_DIR, adding_folder, options, own_folders
from nmt.errors import ConfigError

GLOBAL = "# @package _global_\n"


def write(folder: Path, **texts: str) -> Path:
    """Write files of settings: `model_mine` is model/mine.yaml."""
    for name, text in texts.items():
        path = folder / f"{name.replace('_', '/', 1)}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory."""
    folder = tmp_path / "here with a space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv(CONFIG_DIR, raising=False)
    return folder


def test_files_in_the_current_directory_are_chosen_by_name(here: Path) -> None:
    write(here / "conf", experiment_mine=f"{GLOBAL}defaults:\n  - demo\nname: mine\n", model_narrow="d_model: 32\n")
    config = compose(["experiment=mine", "model=narrow"])
    assert (config.name, config.data.source, config.model.d_model) == ("mine", "demo", 32)
    assert "mine" in options("experiment")
    assert "demo" in options("experiment")


def test_the_flag_wins_over_the_environment_which_wins_over_the_current_directory(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"flag": tmp_path / "flag", "environment": tmp_path / "environment", "here": here / "conf"}
    for steps, folder in enumerate(places.values(), start=1):
        write(folder, experiment_demo=f"{GLOBAL}training:\n  steps: {steps}\n")
    assert compose(["experiment=demo"]).training.steps == 3
    monkeypatch.setenv(CONFIG_DIR, str(places["environment"]))
    assert compose(["experiment=demo"]).training.steps == 2
    with adding_folder(str(places["flag"])):
        assert own_folders() == tuple(places.values())
        assert compose(["experiment=demo"]).training.steps == 1
    assert compose(["experiment=demo"]).training.steps == 2


def test_a_group_with_settings_of_its_name_may_be_new(here: Path) -> None:
    write(here / "conf", averaging_short="last: 3\n")
    assert compose(["averaging=short"]).averaging.last == 3


def test_the_settings_of_another_program_change_nothing(here: Path) -> None:
    usual = compose([])
    write(here / "conf", config="db: mysql\n", db_mysql="host: localhost\n")
    assert compose([]) == usual


def test_help_shows_the_own_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "conf", experiment_mine=f"{GLOBAL}name: mine\n")
    assert main(["train", "--help"]) == 0
    said = capsys.readouterr().out
    assert ", mine, " in said


@pytest.mark.parametrize(
    ("texts", "words", "message"),
    [
        ({"experiment_typo": f"{GLOBAL}training:\n  stepz: 7\n"}, "experiment=typo",
         "conf/experiment/typo.yaml: there is no setting training.stepz; did you mean training.steps?"),
        ({"experiment_typo": "training:\n  steps: 7\n"}, "experiment=typo",
         "conf/experiment/typo.yaml: experiment is not a setting: make `# @package _global_` the first line"),
        ({"experiment_mine": f"{GLOBAL}defaults:\n  - nosuch\n"}, "experiment=mine", "nosuch"),
        ({"experiment_mine": f"{GLOBAL}name: [1\n"}, "experiment=mine", "mine.yaml"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_own_file_is_one_line_that_names_it(
    here: Path, texts: dict[str, str], words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "conf", **texts)
    assert main(["describe", words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_named_folder_without_settings_is_refused(here: Path) -> None:
    (here / "empty").mkdir()
    with adding_folder("empty"), pytest.raises(ConfigError, match="has no settings: write some"):
        compose([])


def test_a_file_in_another_encoding_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "conf", experiment_good=GLOBAL)
    (here / "conf" / "experiment" / "mine.yaml").write_bytes(b"# @package _global_\nname: \xff\n")
    assert main(["describe", "experiment=mine"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"nmt: {here}/conf/experiment/mine.yaml: this is not UTF-8")
    assert error.count("\n") == 1
