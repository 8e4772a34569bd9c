"""What saved settings tell other people, and what is said of those that cannot be read."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.decoding import DecodingConfig
from nmt.config.saved import from_yaml, read_saved, read_settings, to_yaml, without_folders
from nmt.config.tree import Config, PathsConfig
from nmt.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("/home/somebody/corpus/train.en", "train.en"),
        ("~/corpus/train.en", "train.en"),
        ("~somebody/train.en", "train.en"),
        ("../corpus/train.en", "train.en"),
        ("data/train.en", "data/train.en"),
        ("wmt/wmt14", "wmt/wmt14"),
        ("https://example.org/a", "https://example.org/a"),
        ("de:/srv/models/de", "de:de"),
        ("a ${b} / c", "a ${b} / c"),
        ("", ""),
    ],
)  # fmt: skip
def test_paths_of_a_machine_are_left_out(value: str, public: str) -> None:
    settings = Config(paths=PathsConfig(outputs="/home/somebody/outputs"))
    settings = replace(settings, data=replace(settings.data, train=[value] if value else []))
    found = from_yaml(without_folders(to_yaml(settings)))
    assert found.data.train == ([public] if public else [])
    assert found.paths.outputs == "outputs"
    assert found.model == settings.model


def test_settings_that_may_name_files_are_not_those_of_a_strangers_model() -> None:
    usual = DecodingConfig()
    assert replace(usual, beam=7, alpha=0.3).naming_no_file == replace(usual, beam=7, alpha=0.3)


@pytest.mark.parametrize("parse", [from_yaml, read_settings])
@pytest.mark.parametrize(
    ("content", "problem"), [(b"# caf\xe9\n", "is not UTF-8 text"), (b"x: [", "these saved settings are not YAML")]
)
def test_an_error_names_the_file(parse: Callable[[str], object], content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"{re.escape(str(path))}.*{problem}"):
        read_saved(path, parse)
