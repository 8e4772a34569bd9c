"""Tab-separated values: two columns, or two of those that the first line names."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Columns, Pair
from nmt.errors import UserError


def write(path: Path, lines: list[str], opened: Callable[..., object] = open) -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(line + "\n" for line in lines).encode())
    return str(path)


def read(*files: str) -> list[Pair]:
    return list(read_pairs(inputs(files, "train"), ("en", "de")))


def read_columns(folder: Path, *columns: str) -> list[Pair]:
    return list(read_pairs([folder / "x.tsv"], ("en", "de"), Columns(columns)))


def test_tsv_files_are_read_one_after_another(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", ["a\tb", "\t"])
    second = write(tmp_path / "b.tsv.gz", ["c\td"], gzip.open)
    assert read(first, second) == [("a", "b"), ("", ""), ("c", "d")]


@pytest.mark.parametrize("line", ["one", "a\tb\tc"])
def test_wrong_columns_name_file_and_line(tmp_path: Path, line: str) -> None:
    file = write(tmp_path / "x.tsv", ["a\tb", line])
    with pytest.raises(UserError, match=rf"x\.tsv, line 2: {len(line.split(chr(9)))} column"):
        read(file)


def test_empty_lines_are_no_pairs(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.tsv", ["a\tb\r", "", "\tc", "\r"])) == [("a", "b"), ("", "c")]


@pytest.mark.parametrize("header", ["en\tde", "de\ten\r"])
def test_header_with_the_languages_is_no_pair(tmp_path: Path, header: str) -> None:
    file = write(tmp_path / "x.tsv", [header, "one\teins"])
    with pytest.raises(UserError, match=r"x\.tsv, line 1 names the languages: give data\.columns=\[en,de\], or remove"):
        read(file)
    assert read(write(tmp_path / "y.tsv", ["one\teins", "en\tde"])) == [("one", "eins"), ("en", "de")]


def test_tab_separated_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text('id\ttext_de\ttext_en\n1\t"eins\tone\n')
    assert read_columns(tmp_path, "text_en", "text_de") == [("one", '"eins')]
    with pytest.raises(UserError, match=r"x\.tsv has no column en \(data.columns\): choose from id, text_de"):
        read_columns(tmp_path, "en", "text_de")
    (tmp_path / "x.tsv").write_text("en\tde\none\n")
    with pytest.raises(UserError, match=r"x\.tsv, line 2: 1 column\(s\), but the first line names 2"):
        read_columns(tmp_path, "en", "de")
