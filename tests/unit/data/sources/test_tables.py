"""Tables of every format give the same pairs, and one error that names file and line for every mistake."""

import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Languages, Pair
from nmt.errors import UserError

PAIRS = [("a house", "ein Haus"), ('said "no", and left', "there"), ("", "x"), ("ünïcode 👩‍👩‍👧", "\x00 NUL")]
Row = dict[str, object]


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write a table in the format that its name says."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
        return path
    if ".csv" in path.name:
        file = io.StringIO()
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        text = file.getvalue()
    elif ".tsv" in path.name:
        text = "".join("\t".join(map(str, row)) + "\n" for row in (rows[0], *(row.values() for row in rows)))
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    packers: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(text.encode()))
    return path


def read(path: Path, *columns: str, languages: Languages = ("en", "de")) -> list[Pair]:
    return list(read_pairs(inputs([str(path)], "train"), languages, columns))


TABLES = ["x.parquet", "x.jsonl", "x.json.xz", "x.csv", "x.csv.gz"]


@pytest.mark.parametrize("name", [*TABLES, "x.tsv", "x.tsv.gz"])
def test_columns_are_found_by_language_or_by_name(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [{"id": f"{place}", "de": pair[1], "en": pair[0]} for place, pair in enumerate(PAIRS)]
    path = write(tmp_path / name, rows)
    assert read(path) == PAIRS
    assert read(path, languages=("de", "en")) == [(target, source) for source, target in PAIRS]
    assert read(path, "de", "id") == [(target, str(number)) for number, (_, target) in enumerate(PAIRS)]
    for columns in ((), ("id", "note")):
        with pytest.raises(UserError, match=rf"{name}.*(but not [\w ]+: name .* with data\.columns=|3 columns)"):
            read(path, *columns, languages=("en", "fr"))


def test_tab_separated_pairs_need_no_names(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b'a\tb\r\n\n\t"c\n\r\nde\ten\n')
    assert read(path) == [("a", "b"), ("", '"c'), ("de", "en")]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl"])
def test_the_form_of_the_hub_is_read(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [
        {"translation": {"de": "eins\n", "en": "one"}, "id": 1},
        {"translation": {"de": None, "en": "two"}},
    ]
    assert read(write(tmp_path / name, rows)) == [("one", "eins"), ("two", "")]


@pytest.mark.parametrize("name", TABLES)
def test_line_breaks_in_cells_are_one_mark_each(tmp_path: Path, name: str) -> None:
    breaks = ("\n", "\r\n", "\r", "\n\n", "\v", "\x1c", "\x85", "\u2028")
    path = write(tmp_path / name, [{"en": f"one{end}two{end}", "de": f"{end}three"} for end in breaks])
    assert read(path) == [("one\ntwo", "three")] * len(breaks)


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.string_view()])
def test_parquet_text_of_every_type_is_read(tmp_path: Path, kind: pyarrow.DataType) -> None:
    sides = {"en": ["one", "a word longer than twelve bytes"], "de": ["ünïcode", None]}
    table = pyarrow.table({name: pyarrow.array(side, kind) for name, side in sides.items()})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet") == [("one", "ünïcode"), ("a word longer than twelve bytes", "")]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.jsonl", "not json", "line 2: not JSON"),
        ("x.jsonl", "[" * 200_000, "line 2: not JSON"),
        ("x.jsonl", '["one", "eins"]', "line 2: not a JSON object"),
        ("x.jsonl", '{"en": "x", "de": {"text": "y"}}', 'line 2: {"text": "y"} is not text'),
        ("x.jsonl", '{"en": "\\ud800", "de": "x"}', "line 2: .*surrogates"),
        ("x.jsonl", '{"en": "x"}', "line 2 has the columns en, but not de"),
        ("x.csv", "one,eins,uno", "line 3 has 3 columns, not 2"),
        ("x.csv", 'one,"ei"ns', "line 3: not comma-separated values"),
        ("x.csv", 'one,"' + "eins\n" * 300_000, "field larger than field limit"),
        ("x.tsv", "a\tb\tc", "line 2 has 3 columns, not 2"),
    ],
)
def test_bad_rows_name_file_and_line(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    first = {"x.jsonl": '{"en": "one", "de": "eins"}\n', "x.csv": "en,de\none,eins\n", "x.tsv": "one\teins\n"}[name]
    (tmp_path / name).write_text(first + content + "\n")
    with pytest.raises(UserError, match=f"{name}.*{complaint}") as error:
        read(tmp_path / name)
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (pyarrow.array([1, 2]), "row 1: 1 is not text"),
        (pyarrow.array([["a"], []]), r'row 1: \["a"\] is not text'),
        (pyarrow.array([b"ok", b"\xff"]).view(pyarrow.string()), r"is not a whole Parquet file of UTF-8 text \("),
    ],
)
def test_parquet_columns_without_sentences_are_refused(tmp_path: Path, side: pyarrow.Array, words: str) -> None:
    path = tmp_path / "x.parquet"
    column = pyarrow.StructArray.from_arrays([pyarrow.array(["a", "b"]), side], names=["en", "de"])
    pyarrow.parquet.write_table(pyarrow.table({"translation": column}), path)
    with pytest.raises(UserError, match=words):
        read(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        read(path)


def test_columns_that_are_structures_or_occur_twice_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", [{"translation": {"en": "a", "de": "b"}, "note": "c"}])
    with pytest.raises(UserError, match=r"has the columns translation\.en, translation\.de, note, but not translation"):
        read(path, "translation", "note")
    pyarrow.parquet.write_table(pyarrow.table([["a"], ["b"], ["c"]], names=["en", "en", "de"]), path)
    (tmp_path / "x.csv").write_text("en,en,de\na,b,c\n")
    for table in (path, tmp_path / "x.csv"):
        with pytest.raises(UserError, match="has several columns en: "):
            read(table)
