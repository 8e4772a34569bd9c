"""Folders and files that settings name: the home in place of ~."""

from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.config.folders import expanded, folder_to_write
from nmt.errors import UserError
from nmt.text.lines import open_output, read_input


def test_a_home_that_does_not_exist_is_an_error_of_the_user() -> None:
    assert expanded("~/text.en") == Path.home() / "text.en"
    assert expanded("a~b") == Path("a~b")
    with pytest.raises(UserError, match=r"^~nobody-here/text\.en begins with ~ and no user"):
        expanded("~nobody-here/text.en")


def test_a_folder_to_write_cannot_be_an_address() -> None:
    assert folder_to_write("init.folder", "~/new") == Path.home() / "new"
    with pytest.raises(UserError, match=r"^init\.folder=s3://bucket/new is an address: name a local folder$"):
        folder_to_write("init.folder", "s3://bucket/new")


def test_the_home_stands_for_a_tilde_in_folders_inputs_and_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = compose(['paths.data="~/data"', 'paths.outputs="~/runs"', "name=mine"])
    assert config.data_folder.is_relative_to(tmp_path / "data")
    assert config.run_folder == tmp_path / "runs" / "mine"
    with open_output("~/lines") as file:
        file.write(b"ein Hund\n")
    assert (tmp_path / "lines").read_text(encoding="utf-8") == "ein Hund\n"
    assert [*read_input("~/lines")] == ["ein Hund"]
