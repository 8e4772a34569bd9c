"""Folders and files that settings name: the home in place of ~."""

from pathlib import Path

import pytest

from nmt.config.compose import compose
from nmt.config.folders import expanded
from nmt.text.lines import open_output, read_input


def test_the_home_stands_for_a_tilde_in_folders_inputs_and_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = compose(['paths.data="~/data"', 'paths.outputs="~/runs"', "name=mine"])
    assert config.data_folder.is_relative_to(tmp_path / "data")
    assert expanded("~/text.en") == tmp_path / "text.en"
    assert config.run_folder == tmp_path / "runs" / "mine"
    with open_output("~/lines") as file:
        file.write(b"ein Hund\n")
    assert (tmp_path / "lines").read_text(encoding="utf-8") == "ein Hund\n"
    assert [*read_input("~/lines")] == ["ein Hund"]
