"""Further references and labels: from text files, and from columns of tables."""

from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nmt.config.schema import Config, DataConfig, PathsConfig, RuntimeConfig, TokenizerConfig
from nmt.data import prepare, tokenizer_task
from nmt.data.annotations import annotations_name
from nmt.data.sources import registry
from nmt.errors import ConfigError, UserError
from nmt.evaluation.split import read_split
from tests.integration.toy import pairs

TEST = [("the dog", "der Hund", "ein Hund", "news"), ("a cat", "eine Katze", "die Katze", "chat"),
        ("two birds", "zwei Vögel", "2 Vögel", "news")]  # fmt: skip
"""Source, two references, and a domain."""


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_task, "run_in_process", lambda function, *args: function(*args))


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
    assert split.annotations.references == [[row[2] for row in TEST]]
    prepare.prepare(replace(config, data=replace(config.data, test=files[:2])), say_nothing)
    assert not read_split(config.data_folder, "test", ("en", "de")).annotations
    assert not (config.data_folder / annotations_name("test")).exists()


def test_columns_of_tables_are_references_and_labels(tmp_path: Path) -> None:
    rows = [dict(zip(("en", "de", "second", "domain"), row, strict=True)) for row in TEST]
    file = tmp_path / "test.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    config = config_with(tmp_path, [str(file)], reference_columns=["second"], label_columns=["domain"])
    prepare.prepare(config, say_nothing)
    found = read_split(config.data_folder, "test", ("en", "de")).annotations
    assert found.references == [[row[2] for row in TEST]]
    assert found.labels == {"domain": ["news", "chat", "news"]}


def test_columns_of_tables_of_the_hub_are_references_and_labels(tmp_path: Path) -> None:
    names = ("en", "de")
    rows = [{"translation": dict(zip(names, row[:2], strict=True)), "second": row[2], "domain": row[3]} for row in TEST]
    file = tmp_path / "test.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    config = config_with(tmp_path, [str(file)], reference_columns=["second"], label_columns=["domain"])
    found = registry.annotations(config.data, "test")
    assert found.references == [[row[2] for row in TEST]]
    assert found.labels == {"domain": ["news", "chat", "news"]}


def test_a_reference_of_another_length_is_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    write(tmp_path / "test.2", ["ein Hund"])
    with pytest.raises(UserError, match=r"data.test has 3 sentences, but a reference or label has 1 lines"):
        prepare.prepare(config_with(tmp_path, files), say_nothing)


def test_three_files_of_training_text_are_refused(tmp_path: Path) -> None:
    config = config_with(tmp_path, [])
    with pytest.raises(UserError, match=r"data.train names 3 file"):
        prepare.prepare(replace(config, data=replace(config.data, train=[*config.data.train, config.data.train[0]],
                                                     test=config.data.train)), say_nothing)  # fmt: skip


def test_columns_need_tables_in_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need tables in files: data\.source=files"):
        config_with(tmp_path, [], label_columns=["domain"], source="hub")


@pytest.mark.parametrize("name", ["references", "length"])
def test_labels_whose_names_are_taken_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^data\.label_columns=\[domain,{name}\] has the label {name}, .* rename"):
        DataConfig(source="files", label_columns=["domain", name])


@pytest.mark.parametrize("setting", ["label_columns", "reference_columns"])
def test_columns_of_a_test_set_without_columns_are_refused(tmp_path: Path, setting: str) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(2)]
    with pytest.raises(ConfigError, match=rf"^data\.{setting}=\[domain\] needs tables, but data\.test=.* no columns$"):
        prepare.prepare(config_with(tmp_path, files, **{setting: ["domain"]}), say_nothing)
    with pytest.raises(ConfigError, match=rf"^data\.{setting}=\[domain\] needs a test set in tables, but it is held"):
        prepare.prepare(config_with(tmp_path, [], hold_out=0.1, **{setting: ["domain"]}), say_nothing)


def test_columns_of_text_files_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(2)]
    with pytest.raises(ConfigError, match=r"^data\.columns=\[a,b\] names columns, but all files are text"):
        prepare.prepare(config_with(tmp_path, files, columns=["a", "b"]), say_nothing)


@pytest.mark.parametrize("setting", ["label_columns", "reference_columns"])
def test_missing_column_of_the_test_set_is_reported_before_the_training_text_is_read(
    tmp_path: Path, setting: str
) -> None:
    file, said = tmp_path / "test.parquet", list[str]()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"en": "a", "de": "b", "domain": "news"}]), file)
    config = config_with(tmp_path, [str(file)], **{setting: ["dom"]})
    with pytest.raises(UserError, match=rf"has no column dom \(data\.{setting}\): did you mean domain"):
        prepare.prepare(config, said.append)
    assert not any("collect train" in line for line in said)


def test_damaged_annotations_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    config = config_with(tmp_path, files)
    prepare.prepare(config, say_nothing)
    write(config.data_folder / annotations_name("test"), ['{"references": []}'])
    with pytest.raises(UserError, match="is not what was prepared"):
        read_split(config.data_folder, "test", ("en", "de"))
