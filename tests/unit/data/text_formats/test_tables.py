"""Tables of text give the same pairs as Parquet files: columns named after the languages, or any two."""

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
from nmt.data.sources.source import Columns, Pair
from nmt.errors import UserError

PAIRS = [("a house", "ein Haus"), ('said "no", and left', "tab\there"), ("", "x"), ("ünïcode 👩‍👩‍👧", "\x00 NUL")]
Row = dict[str, str | None]


def parquet(path: Path, rows: Sequence[Row]) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)


def json_lines(path: Path, rows: Sequence[Row]) -> None:
    pack(path, "".join(json.dumps(row) + "\n" for row in rows))


def comma_separated(path: Path, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    pack(path, text.getvalue())


def pack(path: Path, text: str) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(text.encode()))


WRITERS = {
    "x.parquet": parquet,
    **{f"x.{end}": json_lines for end in ("jsonl", "jsonl.gz", "json.xz", "ndjson")},
    **{f"x.{end}": comma_separated for end in ("csv", "csv.gz", "csv.xz")},
}


def read(path: Path, *columns: str, languages: tuple[str, str] = ("en", "de")) -> list[Pair]:
    return list(read_pairs(inputs([str(path)], "train"), languages, Columns(columns)))


@pytest.mark.parametrize("name", WRITERS)
def test_columns_are_found_by_language_or_by_name(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [
        {"id": str(number), "de": target, "en": source, "note": target} for number, (source, target) in enumerate(PAIRS)
    ]
    WRITERS[name](tmp_path / name, rows)
    assert read(tmp_path / name) == PAIRS
    assert read(tmp_path / name, languages=("de", "en")) == [(target, source) for source, target in PAIRS]
    assert read(tmp_path / name, "note", "id") == [(target, str(number)) for number, (_, target) in enumerate(PAIRS)]


@pytest.mark.parametrize("name", WRITERS)
def test_missing_columns_are_an_error_that_lists_the_others(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, [{"source": "a", "target": "b"}])
    where = rf"x\.{name[2:].replace('.', '[.]')}(, line 1)?"
    neither = (
        "has the columns source, target, but neither `translation` of the Hub's form nor en and de: .*data.columns="
    )
    with pytest.raises(UserError, match=f"{where} {neither}"):
        read(tmp_path / name)
    with pytest.raises(UserError, match=rf"{where} has no column sorce \(data.columns\): did you mean source\?"):
        read(tmp_path / name, "sorce", "target")
    assert read(tmp_path / name, "source", "target") == [("a", "b")]


BREAKS = ("\n", "\r\n", "\r", "\n\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("name", WRITERS)
def test_line_breaks_in_cells_are_one_mark_each(tmp_path: Path, name: str) -> None:
    rows: list[Row] = [{"en": f"one{end}two{end}", "de": f"{end}three"} for end in BREAKS]
    WRITERS[name](tmp_path / name, rows)
    assert read(tmp_path / name) == [("one\ntwo", "three")] * len(BREAKS)


def test_missing_cells_are_empty(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.jsonl"):
        WRITERS[name](tmp_path / name, [{"en": None, "de": "b"}, {"en": "a", "de": None}])
        assert read(tmp_path / name) == [("", "b"), ("a", "")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("en,de\none,eins\ntwo\n", r"line 3: 1 cells, but the first row names 2 columns"),
        ("en,de\none,eins,uno\n", r"line 2: 3 cells"),
        ("en,de\none,ei\rns\n", r"line 2: not comma-separated values"),
        ('en,de\none,"ei"ns\n', r"line 2: not comma-separated values"),
        ('en,de\none,"eins\ntwo,zwei\n', r"not comma-separated values \(unexpected end of data\)"),
        ('en,de\none,"' + "eins\n" * 300_000, r"is a quote not closed\?"),
        ("en,de\n" + '"a\n",' * 300_000, r"is a quote not closed\?"),
        ("en;de\none;eins\n", "has the columns en;de, but neither"),
        ("en,de,en\na,b,c\n", "has several columns en: leave one"),
    ],
)
def test_bad_csv_names_file_and_line(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "x.csv").write_text(content, newline="")
    with pytest.raises(UserError, match=rf"x\.csv.*{complaint}"):
        read(tmp_path / "x.csv")


def test_folder_of_shards_in_another_form(tmp_path: Path) -> None:
    for number in (1, 0):
        json_lines(tmp_path / f"train-0000{number}-of-00002.jsonl.gz", [{"en": f"train {number}", "de": "x"}])
    comma_separated(tmp_path / "validation.csv", [{"en": "valid", "de": "y"}])
    assert read(tmp_path) == [("train 0", "x"), ("train 1", "x")]
    assert list(read_pairs(inputs([str(tmp_path)], "valid"), ("en", "de"))) == [("valid", "y")]
    (tmp_path / "train-00000-of-00002.jsonl.gz").unlink()
    with pytest.raises(UserError, match=r"train-00000-of-00002\.jsonl\.gz is missing, though train-00001"):
        read(tmp_path)


SCORED = [("a", "b", 0.5), ("c", "d", -2.0), ("e", "f", None)]


def write_scored(path: Path) -> None:
    rows = [{"score": score, "de": target, "en": source} for source, target, score in SCORED]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        nested = [{"score": row["score"], "translation": {"en": row["en"], "de": row["de"]}} for row in rows[:1]]
        path.write_text("".join(json.dumps(row) + "\n" for row in [*nested, *rows[1:]]))
    else:
        separator = "," if path.suffix == ".csv" else "\t"
        cells = [[str(cell) if cell is not None else "" for cell in row.values()] for row in rows]
        path.write_text("".join(separator.join(line) + "\n" for line in [list(rows[0]), *cells]))


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.csv", "x.tsv"])
def test_scores_are_read_from_their_column(tmp_path: Path, name: str) -> None:
    write_scored(tmp_path / name)
    files = inputs([str(tmp_path / name)], "train")
    found = list(read_pairs(files, ("en", "de"), Columns(score="score")))
    assert [pair[:2] for pair in found] == [(source, target) for source, target, _ in SCORED]
    scores = [pair[2] for pair in found]
    assert scores[:2] == [0.5, -2.0]
    assert scores[2] != scores[2]  # not a number
    with pytest.raises(UserError, match=rf"x\.{name[2:]}.* has no column scor \(data.score_column\)"):
        list(read_pairs(files, ("en", "de"), Columns(score="scor")))


def test_scores_must_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("en\tde\ts\na\tb\tgood\n")
    with pytest.raises(UserError, match=r"x\.tsv, line 2: s holds good, not a number"):
        list(read_pairs([tmp_path / "x.tsv"], ("en", "de"), Columns(score="s")))
    (tmp_path / "x.jsonl").write_text('{"en": "a", "de": "b", "s": true}\n')
    with pytest.raises(UserError, match=r"line 1: s holds True, not a number"):
        list(read_pairs([tmp_path / "x.jsonl"], ("en", "de"), Columns(score="s")))
