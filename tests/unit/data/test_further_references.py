"""Further references of a test set, from text files."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import prepare
from nmt.errors import UserError
from nmt.evaluation.split import read_split
from tests.integration.toy import pairs

TEST = [
    ("the dog", "der Hund", "ein Hund"),
    ("a cat", "eine Katze", "die Katze"),
    ("two birds", "zwei Vögel", "2 Vögel"),
]
"""Source and two references."""


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def config_with(folder: Path, test: list[str], **data: object) -> Config:
    """Return settings with a toy training text and the given test set."""
    sides = list(zip(*pairs(120, 1), strict=True))
    train = [
        write(folder / f"train.{language}", list(side)) for language, side in zip(("en", "de"), sides, strict=True)
    ]
    settings = DataConfig(corpus="toy", source="files", train=train, valid=train, test=test)
    return replace(
        Config(),
        data=replace(settings, **data),  # type: ignore[arg-type]
        tokenizer=TokenizerConfig(vocab_size=90),
        paths=PathsConfig(data=str(folder / "prepared")),
        runtime=RuntimeConfig(workers=1),
    )


def say_nothing(_: str) -> None:
    """Take a line of progress."""


def test_text_files_after_the_second_are_references(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    config = config_with(tmp_path, files)
    prepare.prepare(config, say_nothing)
    split = read_split(config.data_folder, "test", ("en", "de"))
    assert split.references == [row[1] for row in TEST]
    assert split.further_references == [[row[2] for row in TEST]]
    prepare.prepare(replace(config, data=replace(config.data, test=files[:2])), say_nothing)
    assert not read_split(config.data_folder, "test", ("en", "de")).further_references
    assert not (config.data_folder / "test.references.jsonl").exists()


def test_a_reference_of_another_length_is_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    write(tmp_path / "test.2", ["ein Hund"])
    with pytest.raises(UserError, match=r"data.test has 3 sentences, but a reference has 1 lines"):
        prepare.prepare(config_with(tmp_path, files), say_nothing)


def test_damaged_references_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    config = config_with(tmp_path, files)
    prepare.prepare(config, say_nothing)
    write(config.data_folder / "test.references.jsonl", ["[]"])
    with pytest.raises(UserError, match="is not what was prepared"):
        read_split(config.data_folder, "test", ("en", "de"))
