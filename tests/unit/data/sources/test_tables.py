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
from nmt.text.lines import MAX_LINE_BYTES

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
        cells = [list(rows[0]), *([str(cell if cell is not None else "") for cell in row.values()] for row in rows)]
        text = "".join("\t".join(row) + "\n" for row in cells)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    packers: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(text.encode()))
    return path


def read(path: Path, *columns: str, languages: Languages = ("en", "de")) -> list[Pair]:
    return list(read_pairs(inputs([str(path)], "train"), languages, columns))


TSV = ["x.tsv", "x.tsv.gz"]
OTHERS = ["x.parquet", "x.jsonl", "x.jsonl.gz", "x.json.xz", "x.ndjson", "x.csv", "x.csv.gz", "x.csv.xz"]


@pytest.mark.parametrize("name", [*OTHERS, *TSV])
def test_columns_are_found_by_language_or_by_name(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [
        {"id": str(number), "de": target, "en": source, "note": target} for number, (source, target) in enumerate(PAIRS)
    ]
    path = write(tmp_path / name, rows)
    if name in OTHERS:
        assert read(path) == PAIRS
        assert read(path, languages=("de", "en")) == [(target, source) for source, target in PAIRS]
    assert read(path, "note", "id") == [(target, str(number)) for number, (_, target) in enumerate(PAIRS)]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl"])
def test_the_form_of_the_hub_is_read(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [
        {"translation": {"de": "eins\n", "en": "one"}, "id": 1},
        {"translation": {"de": None, "en": "two"}},
    ]
    assert read(write(tmp_path / name, rows)) == [("one", "eins"), ("two", "")]
    with pytest.raises(UserError, match=r"has the columns .*de, en.*, but not en and fr"):
        read(tmp_path / name, languages=("en", "fr"))


@pytest.mark.parametrize("name", OTHERS)
def test_missing_columns_are_an_error_that_lists_the_others(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [{"source": "a", "target": "b"}])
    with pytest.raises(
        UserError, match=rf"{name}(, line 1)? has the columns source, target, but not en and de: .*data.columns="
    ):
        read(path)
    with pytest.raises(
        UserError, match=rf"{name}(, line 1)? has no column sorce \(data.columns\): did you mean source\?"
    ):
        read(path, "sorce", "target")
    assert read(path, "source", "target") == [("a", "b")]


BREAKS = ("\n", "\r\n", "\r", "\n\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("name", OTHERS)
def test_line_breaks_in_cells_are_one_mark_each(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [{"en": f"one{end}two{end}", "de": f"{end}three"} for end in BREAKS])
    assert read(path) == [("one\ntwo", "three")] * len(BREAKS)


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()])
def test_parquet_text_of_every_type_is_read(tmp_path: Path, kind: pyarrow.DataType) -> None:
    sides = {"en": ["one", "a word longer than twelve bytes"], "de": ["ünïcode", None]}
    table = pyarrow.table({name: pyarrow.array(side, kind) for name, side in sides.items()})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet") == [("one", "ünïcode"), ("a word longer than twelve bytes", "")]


def test_tab_separated_pairs_need_no_names(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b'a\tb\r\n\n\t"c\n\r\n')
    assert read(path) == [("a", "b"), ("", '"c')]
    path.write_bytes(b"one\teins\nen\tde\n")
    assert read(path) == [("one", "eins"), ("en", "de")]


LONG = "x" * MAX_LINE_BYTES
MANY = ", ".join(f'"column {number}": 1' for number in range(500))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.jsonl", "not json", "line 2: not JSON"),
        ("x.jsonl", "[" * 200_000, "line 2: not JSON"),
        ("x.jsonl", '{"en": ' + "9" * 5000 + ', "de": "x"}', "line 2: not JSON"),
        ("x.jsonl", '["one", "eins"]', "line 2: not a JSON object"),
        ("x.jsonl", '{"en": "x", "de": {"text": "y"}}', 'line 2 holds {"text": "y"}, not text'),
        ("x.jsonl", '{"en": "x", "de": true}', "line 2 holds true, not text"),
        ("x.jsonl", '{"en": "\\ud800", "de": "x"}', "line 2 holds half of a surrogate pair"),
        ("x.jsonl", '{"en": "' + LONG + '", "de": "x"}', "line 2: longer than 1,048,576 bytes"),
        ("x.jsonl", '{"en": "x", ' + MANY + "}", r"\.\.\. \(501 in all\)"),
        ("x.csv", "two", r"line 3: 1 columns, but the first line names 2"),
        ("x.csv", "one,eins,uno", r"line 3: 3 columns"),
        ("x.csv", "one,ei\rns", r"line 3: not comma-separated values"),
        ("x.csv", 'one,"ei"ns', r"line 3: not comma-separated values"),
        ("x.csv", 'one,"eins\ntwo,zwei', r"not comma-separated values \(unexpected end of data\)"),
        ("x.csv", 'one,"' + "eins\n" * 300_000, r"field larger than field limit"),
        ("x.tsv", "one", r"line 2: 1 columns, but source, tab, target are needed"),
        ("x.tsv", "a\tb\tc", r"line 2: 3 columns"),
    ],
)  # fmt: skip
def test_bad_rows_name_file_and_line(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    first = {"x.jsonl": '{"en": "one", "de": "eins"}\n', "x.csv": "en,de\none,eins\n", "x.tsv": "one\teins\n"}[name]
    (tmp_path / name).write_text(first + content + "\n", newline="")
    with pytest.raises(UserError, match=f"{name}.*{complaint}") as error:
        read(tmp_path / name)
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize(
    ("name", "rows", "complaint"),
    [
        ("x.parquet", [{"en": 1, "de": "a"}], "row 1 holds 1, not text"),
        ("x.parquet", [{"en": "a", "de": "b"}, {"en": "x" * (MAX_LINE_BYTES + 1), "de": "b"}], "row 2 holds more than"),
        ("x.csv", [{"en;de": "one;eins"}], "has the columns en;de, but not"),
        ("x.tsv", [{"en": "de", "de": "en"}], r"line 1 names the languages: give data\.columns=\[en,de\], or remove"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, name: str, rows: list[Row], complaint: str) -> None:
    with pytest.raises(UserError, match=rf"{name},? {complaint}"):
        read(write(tmp_path / name, rows))


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("en,de,en\na,b,c\n")
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 3, names=["en", "de", "en"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        with pytest.raises(UserError, match=rf"{name} has several columns en"):
            read(tmp_path / name)


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", [{"en": "one", "de": "eins"}] * 500)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        read(path)
