"""Tables of parallel text: Parquet, JSON lines, and values separated by commas or tabs, all read in one way."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.data.sources.source import Languages, Pair
from nmt.errors import UserError, nearest
from nmt.text.lines import MAX_LINE_BYTES, read_lines

TRANSLATION = "translation"
"""The Hub's column of translations: a structure with one text per language."""
MAX_NAMES_SHOWN = 20
"""The largest number of columns that an error names."""
MAX_LETTERS_SHOWN = 40
"""The largest number of letters that an error shows of a name or a value."""
BATCH_ROWS = 10_000
"""Rows of Parquet that are read together."""

Choose = Callable[..., list[str]]
"""Returns the columns of source and target, given the names of all, and their place if it is not the whole file."""
Batches = Callable[[Path, list[str]], Iterator[Any]]
"""Returns tables of Arrow with the rows of some columns of a Parquet file; `a.b` is a column in the structure a."""
Rows = Iterator[tuple[int, Sequence[Any]]]
"""The number of each line, or row of Parquet, and its cells in the chosen columns."""


def parquet_batches(path: Path, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of some columns of a Parquet file as tables of Arrow."""
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    with pyarrow.parquet.ParquetFile(path) as file:
        yield from map(pyarrow.table, file.iter_batches(BATCH_ROWS, columns=columns))


def read_table(
    path: Path, kind: str, languages: Languages, columns: Sequence[str], batches: Batches = parquet_batches
) -> Iterator[Pair]:
    r"""Yield the pairs of a file, whose columns are named after the languages if the settings do not name them.

    A \n in a side is a line break inside a cell. Lines of cells end at the characters of str.splitlines, because most
    tables do not define them; tab-separated cells have one line.
    """
    unit = "row" if kind == "parquet" else "line"

    def choose(names: Sequence[str], where: str = str(path)) -> list[str]:
        return _choose(names, languages, columns, where)

    if kind == "parquet":
        rows = _parquet(path, choose, batches, nested=not columns)
    elif kind == "json":
        rows = _json(path, choose, nested=not columns)
    else:
        rows = _separated(path, kind, choose, languages if kind == "tsv" and not columns else ())
    for number, (source, target) in rows:
        try:
            yield (source, target) if kind == "tsv" else (_text(source), _text(target))
        except ValueError as error:
            raise UserError(f"{path}, {unit} {number} holds {error}.") from error


def _choose(names: Sequence[str], languages: Languages, columns: Sequence[str], where: str) -> list[str]:
    """Return the columns of the source and of the target; refuse a table without them."""
    wanted = columns or languages
    shown = [name[:MAX_LETTERS_SHOWN] for name in names[:MAX_NAMES_SHOWN]]
    if not columns and not {*wanted} <= {*names}:
        more = f", ... ({len(names):,} in all)" if len(names) > MAX_NAMES_SHOWN else ""
        raise UserError(
            f"{where} has the columns {', '.join(shown)}{more}, but not {' and '.join(languages)}: name the source and "
            "the target column with data.columns=[SOURCE,TARGET]"
        )
    for name in wanted:
        if names.count(name) != 1:
            count = "several columns" if name in names else "no column"
            raise UserError(f"{where} has {count} {name} (data.columns): {nearest(name, shown)}")
    return list(wanted)


def _text(cell: object) -> str:
    """Return a cell's text without empty lines; raise a ValueError that says what else it holds."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise ValueError(f"{json.dumps(cell, default=str)[:MAX_LETTERS_SHOWN]}, not text")
    if len(cell) > MAX_LINE_BYTES:
        raise ValueError(f"more than {MAX_LINE_BYTES:,} characters, which no sentence has")
    try:
        cell.isascii() or cell.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which is not a character") from None
    lines = cell.splitlines()
    return lines[0] if len(lines) == 1 else "\n".join(line for line in lines if line)


def _json(path: Path, choose: Choose, *, nested: bool) -> Rows:
    """Yield the cells of JSON lines, one object per line, which may be in the Hub's form; skip empty lines."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON ({error}): give one object per line.") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: not a JSON object with the two sides as keys.")
        if nested and isinstance(row.get(TRANSLATION), dict):
            row |= row[TRANSLATION]
        yield number, [row[name] for name in choose(list(row), f"{path}, line {number}")]


def _separated(path: Path, kind: str, choose: Choose, names: Sequence[str]) -> Rows:
    """Yield the cells of a file whose first line names the columns, unless their `names` are given."""
    rows = _commas(path) if kind == "csv" else _tabs(path)
    if named_by_file := not names:
        _, names = next(rows, (0, []))
    chosen = [names.index(name) for name in choose(names)]
    for number, cells in rows:
        if len(cells) != len(names):
            columns = f"the first line names {len(names)}" if named_by_file else "source, tab, target are needed"
            raise UserError(f"{path}, line {number}: {len(cells)} columns, but {columns}.")
        if number == 1 and {*cells} == {*names}:
            raise UserError(
                f"{path}, line 1 names the languages: give data.columns=[{','.join(names)}], or remove the line."
            )
        yield number, [cells[index] for index in chosen]


def _tabs(path: Path) -> Rows:
    lines = enumerate(read_lines(path), 1)
    return ((number, [cell.rstrip("\r") for cell in line.split("\t")]) for number, line in lines if line)


def _commas(path: Path) -> Rows:
    """Yield each row, in which quoted cells may span lines, with the number of the line on which it ends."""
    csv.field_size_limit(MAX_LINE_BYTES)  # refuses a quote that is never closed before it fills the memory
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not comma-separated values ({error}).") from error


def _parquet(path: Path, choose: Choose, batches: Batches, *, nested: bool) -> Rows:
    """Yield the cells of a Parquet file, which may be in the Hub's form."""
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    with _explaining_errors(path):
        schema, inner = pyarrow.parquet.read_schema(path), list[str]()
        if nested and TRANSLATION in schema.names and pyarrow.types.is_struct(schema.field(TRANSLATION).type):
            inner = [each.name for each in schema.field(TRANSLATION).type]
        chosen = choose([*inner, *(name for name in schema.names if name not in inner)])
        wanted = [f"{TRANSLATION}.{name}" if name in inner else name for name in chosen]
        number = 0
        for table in batches(path, wanted):
            flat = table.flatten() if inner else table
            columns = (flat.column(name).to_pylist() for name in wanted)
            for row in zip(*columns, strict=True):
                yield (number := number + 1), row


def count_rows(path: Path) -> int:
    """Return the number of rows that the metadata of a Parquet file gives."""
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    with _explaining_errors(path):
        return int(pyarrow.parquet.read_metadata(path).num_rows)


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    import pyarrow  # noqa: PLC0415 - slow to import

    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(f"{path} has text that is not UTF-8: convert it.") from error
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} is not a whole Parquet file ({reason}): fetch it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}.") from error
