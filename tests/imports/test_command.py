"""The name of an imported run, and what is refused."""

from pathlib import Path

import pytest

from nmt import cli
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.imports import command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "opus-mt"),
        (["name=mine"], "mine"),
        ([f"name={Config().name}"], Config().name),  # a name like any other
    ],
)
def test_run_has_the_name_that_is_given_or_that_of_the_folder(
    tmp_path: Path, words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []

    def stop(config: Config) -> None:
        names.append(config.name)
        raise UserError("stopped before anything is read")

    monkeypatch.setattr(command, "import_model", stop)
    assert cli.main(["import", f"input={tmp_path}/opus-mt", *words]) == 2
    assert names == [expected]


def test_folder_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", "input=/"]) == 2
    assert (
        capsys.readouterr().err
        == "nmt: name= must be one or more plain names of folders, joined by /, each of at most 64 characters\n"
    )
    assert cli.main(["import"]) == 2
    assert capsys.readouterr().err == "nmt: name the folder of a model to import: nmt import input=FOLDER\n"


def test_folder_that_is_no_model_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", f"input={tmp_path}", f"paths.outputs={tmp_path}", "name=x"]) == 2
    assert "has no config.json: fetch all files of a Marian model" in capsys.readouterr().err
