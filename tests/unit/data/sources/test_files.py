"""Pairs from text and Parquet files, and one clear error for every bad file."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.sources import parquet_tables as parquet
from nmt.data.sources.cells import cell_text
from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Columns, Pair
from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES

PAIRS = [("a house", "ein Haus"), ("the ships", "die Schiffe"), ("", ""), ("odd\u2028 \rone\x85", "ein\x0b\x1c übles")]


def write(path: Path, lines: list[str], opened: Callable[..., object] = open, end: str = "\n") -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(line + end for line in lines).encode())
    return str(path)


def write_parquet(
    path: Path, pairs: list[Pair], keys: tuple[str, str] = ("en", "de"), column: str = "translation"
) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{column: dict(zip(keys, pair, strict=True))} for pair in pairs]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return str(path)


def read(*files: str, languages: tuple[str, str] = ("en", "de"), split: str = "train") -> list[Pair]:
    return list(read_pairs(inputs(files, split), languages))


@pytest.mark.parametrize(("suffix", "opened"), [("", open), (".gz", gzip.open), (".GZ", gzip.open), (".xz", lzma.open)])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_files_are_read_line_by_line(tmp_path: Path, suffix: str, opened: Callable[..., object], end: str) -> None:
    files = [write(tmp_path / f"t.{i}{suffix}", [pair[i] for pair in PAIRS], opened, end) for i in (0, 1)]
    assert read(*files) == PAIRS


def test_byte_order_mark_and_missing_last_line_end_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\ntwo")
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    assert read(str(tmp_path / "a"), str(tmp_path / "b")) == [("one", "eins"), ("two", "zwei")]


def test_parquet_columns_are_found_by_language(tmp_path: Path) -> None:
    pairs = [("one\n", "eins"), ("two", "zwei")]
    file = write_parquet(tmp_path / "x.parquet", pairs)
    assert read(file) == [("one", "eins"), ("two", "zwei")]
    assert read(file, languages=("de", "en")) == [("eins", "one"), ("zwei", "two")]


def test_folder_of_shards_gives_the_split_in_order(tmp_path: Path) -> None:
    for number in (1, 0):
        write_parquet(tmp_path / f"train-0000{number}-of-00002.parquet", [(f"train {number}", "x")])
    write_parquet(tmp_path / "validation-00000-of-00001.parquet", [("valid", "y")])
    assert read(str(tmp_path)) == [("train 0", "x"), ("train 1", "x")]
    assert read(str(tmp_path), split="valid") == [("valid", "y")]
    with pytest.raises(UserError, match="holds no shards of test"):
        read(str(tmp_path), split="test")


def test_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    long, short = write(tmp_path / "long", ["x"] * 7), write(tmp_path / "short", ["x"] * 4)
    with pytest.raises(UserError, match=r"long has 7 sentences, but .*short has 4"):
        read(long, short)
    with pytest.raises(UserError, match=r"short has 4 sentences, but .*long has 7"):
        read(short, long)


def test_missing_empty_and_single_files_are_refused(tmp_path: Path) -> None:
    good, empty = write(tmp_path / "good", ["x"]), write(tmp_path / "empty", [])
    with pytest.raises(UserError, match=r"nowhere does not exist .* check data\.train"):
        read(good, str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="empty is empty"):
        read(good, empty)
    with pytest.raises(UserError, match=r"names 1 file.s. \(text\): give two"):
        read(good)


def test_not_utf8_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("gut\nauch gut\nschön\n".encode("latin-1"))
    good = write(tmp_path / "good", ["x"] * 3)
    with pytest.raises(UserError, match=r"latin, line 3: not UTF-8 \(byte 4 of the line\)"):
        read(str(tmp_path / "latin"), good)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (bz2.compress(b"one\n" * 9), "bzip2"),
        (gzip.compress(b"one\n" * 9), "gzip"),
        (lzma.compress(b"one\n" * 9), "xz"),
        (bytes.fromhex("28b52ffd2404410000") + b"one", "zstd"),
    ],
    ids=["bzip2", "gzip", "xz", "zstd"],
)
def test_compressed_text_under_another_name_is_refused_as_such(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "packed").write_bytes(content)
    with pytest.raises(UserError, match=rf"packed is compressed by {kind}: decompress it, or use \.gz or \.xz\.$"):
        read(str(tmp_path / "packed"), str(tmp_path / "packed"))


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_truncated_compressed_file_is_refused(tmp_path: Path, suffix: str, opened: Callable[..., object]) -> None:
    path = tmp_path / f"a{suffix}"
    write(path, [f"line {number * 7919 % 1000}" for number in range(5000)], opened)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=rf"a\{suffix} is damaged or cut short"):
        read(str(path), str(path))
    path.write_bytes(b"plain text under a wrong name\n")
    with pytest.raises(UserError, match=rf"a\{suffix} is damaged"):
        read(str(path), str(path))


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    whole = Path(write_parquet(tmp_path / "x.parquet", [("one", "eins")] * 500))
    with pytest.raises(UserError, match=r"x\.parquet has no text in the language fr: choose from de, en"):
        read(str(whole), languages=("en", "fr"))
    other = write_parquet(tmp_path / "other.parquet", [("one", "eins")], column="text")
    with pytest.raises(UserError, match=r"other\.parquet has the columns text, but neither `translation`"):
        read(other)
    whole.write_bytes(whole.read_bytes()[:-50])
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        read(str(whole))


def test_parquet_with_damaged_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 1)
    file = Path(write_parquet(tmp_path / "x.parquet", [("one", "eins")]))
    before, name, after = file.read_bytes().partition(b"\x19\x28\x0btranslation")  # the path of the first column
    file.write_bytes(before + name.replace(b"trans", b"\xff" * 5) + after)
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        list(read_pairs([file], ("en", "de")))


def test_parquet_with_huge_columns_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = write_parquet(tmp_path / "long.parquet", [("x" * (MAX_LINE_BYTES + 100), "eins")])
    with pytest.raises(UserError, match=r"long\.parquet has 1,\d+,\d+ bytes in 1 texts of row group 1: write it again"):
        read(long)
    pairs = [(f"number {number}", "eins") for number in range(500)]
    many = write_parquet(tmp_path / "many.parquet", pairs)
    assert read(many) == pairs
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 2000)
    with pytest.raises(UserError, match=r"many\.parquet has \d,\d+ bytes in 500 texts of row group 1"):
        read(many)


def test_parquet_with_huge_unused_columns_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"translation": {"de": "eins", "en": "one"}, "other": "x" * 5000}] * 3
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 2000)
    assert read(str(tmp_path / "x.parquet")) == [("one", "eins")] * 3


def test_columns_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": ["one\u2028two\n"], "b": [None], "score": [0.5]}), path)
    assert list(read_pairs([path], ("en", "de"), Columns(("a", "b"), "score"))) == [("one\ntwo", "", 0.5)]
    with pytest.raises(UserError, match=r"x\.parquet has no column c \(data.columns\): choose from a, b, score"):
        list(read_pairs([path], ("en", "de"), Columns(("a", "c"))))
    with pytest.raises(UserError, match=r"x\.parquet has no column scor \(data.score_column\): did you mean score"):
        list(read_pairs([path], ("en", "de"), Columns(("a", "b"), "scor")))


def test_scores_need_a_table_with_numbers(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"en": ["a"], "de": ["b"]}), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="has string, not numbers, in the column en"):
        list(read_pairs([tmp_path / "x.parquet"], ("en", "de"), Columns(score="en")))
    (tmp_path / "x.en").write_text("a\n")
    with pytest.raises(UserError, match=r"has no columns, so data\.score_column=s needs another format"):
        read_pairs([tmp_path / "x.en"] * 2, ("en", "de"), Columns(score="s"))


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "\na", "a\u2028\u2029b\r\n \r\nc", "  a  "])
def test_text_of_a_cell_is_its_lines(text: str) -> None:
    assert cell_text(text).split("\n") == ([line for line in text.splitlines() if line] or [""])


def test_bad_parquet_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"en": [1, 2], "de": ["a", "b"]}), path)
    with pytest.raises(UserError, match="has int64, not text, in the column en"):
        read(str(path))
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 3, names=["en", "de", "en"]), path)
    with pytest.raises(UserError, match="has several columns en: leave one"):
        read(str(path))
    rows = [{"en": f"number {number}", "de": "x", "body": "long " * 900} for number in range(500)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 20_000)
    assert len(read(str(path))) == 500
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 2000)
    with pytest.raises(UserError, match=r"bytes in 500 texts of row group 1"):
        read(str(path))
