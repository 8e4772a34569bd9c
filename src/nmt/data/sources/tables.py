"""Tables of parallel text: Parquet, JSON lines, and values separated by commas or tabs."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.data.sources.source import Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES, read_lines

TRANSLATION = "translation"
"""The Hub's column of translations: a structure with one text per language."""
MAX_NAMES_SHOWN, MAX_LETTERS_SHOWN = 20, 40
"""The largest number of columns, and of letters of a name or value, that an error shows."""
BATCH_ROWS = 10_000
"""Rows of Parquet that are read together."""

Batches = Callable[[Path, list[str]], Iterator[Any]]
"""Returns tables of Arrow with the rows of some columns of a Parquet file; `a.b` is a column in the structure a."""
Rows = Iterator[tuple[int, Sequence[Any]]]
"""The number of each line, or row of Parquet, and its cells in the wanted columns."""


def read_table(
    path: Path, kind: str, languages: Languages, columns: Sequence[str], batches: Batches | None = None
) -> Iterator[Pair]:
    r"""Yield the pairs of a file, whose columns are named after the languages if the settings do not name them.

    A file of tab-separated values needs no names. A \n in a side is a line break inside a cell.
    """
    wanted = list(columns or languages)
    if kind == "parquet":
        rows = _parquet(path, wanted, batches or _batches)
    elif kind == "json":
        rows = _json(path, wanted)
    else:
        rows = _separated(path, wanted, is_csv=kind == "csv", may_lack_names=not columns and kind == "tsv")
    for number, cells in rows:
        try:
            source, target = cells if kind == "tsv" else map(_text, cells)
        except ValueError as error:
            raise UserError(f"{path}, {'row' if kind == 'parquet' else 'line'} {number}: {error}.") from error
        yield source, target


def _find(names: Sequence[str], wanted: Sequence[str], where: str) -> list[str]:
    """Return the wanted columns, which may be inside the Hub's column of translations."""
    found = [name if name in names else f"{TRANSLATION}.{name}" for name in wanted]
    if missing := [name for name, column in zip(wanted, found, strict=True) if column not in names]:
        shown = ", ".join(name[:MAX_LETTERS_SHOWN] for name in names[:MAX_NAMES_SHOWN])
        raise UserError(
            f"{where} has the columns {shown}, but not {' and '.join(missing)}: name the source and the target column "
            "with data.columns=[SOURCE,TARGET]"
        )
    if repeated := [name for name in found if names.count(name) > 1]:
        raise UserError(f"{where} has several columns {repeated[0]}: give each a name of its own")
    return found


def _text(cell: object) -> str:
    """Return a cell's text without empty lines; refuse what is no text that UTF-8 can encode."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise ValueError(f"{json.dumps(cell, default=str)[:MAX_LETTERS_SHOWN]} is not text")
    cell.isascii() or cell.encode()
    lines = cell.splitlines()
    return lines[0] if len(lines) == 1 else "\n".join(line for line in lines if line)


def _json(path: Path, wanted: Sequence[str]) -> Rows:
    """Yield the cells of JSON lines, one object per line; skip empty lines."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{where}: not JSON ({error}): give one object per line.") from error
        if not isinstance(row, dict):
            raise UserError(f"{where}: not a JSON object with the two sides as keys.")
        if isinstance(inner := row.get(TRANSLATION), dict):
            row |= {f"{TRANSLATION}.{name}": text for name, text in inner.items()}
        yield number, [row[name] for name in _find(list(row), wanted, where)]


def _separated(path: Path, wanted: list[str], *, is_csv: bool, may_lack_names: bool) -> Rows:
    """Yield the cells of a file whose first line names the columns, or has a pair if it may lack names."""
    rows = _commas(path) if is_csv else _tabs(path)
    first = next(rows, (1, list[str]()))
    names = first[1]
    if may_lack_names and not {*wanted} <= {*names}:
        names, rows = wanted, chain([first] if names else [], rows)
    chosen = [names.index(name) for name in _find(names, wanted, str(path))]
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(f"{path}, line {number} has {len(cells)} columns, not {len(names)}.")
        yield number, [cells[index] for index in chosen]


def _tabs(path: Path) -> Iterator[tuple[int, list[str]]]:
    lines = enumerate(read_lines(path), 1)
    return ((number, [cell.rstrip("\r") for cell in line.split("\t")]) for number, line in lines if line)


def _commas(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row, in which quoted cells may span lines, with the number of the line on which it ends."""
    csv.field_size_limit(MAX_LINE_BYTES)  # refuses a quote that is never closed before it fills the memory
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not comma-separated values ({error}).") from error


def _parquet(path: Path, wanted: Sequence[str], batches: Batches) -> Rows:
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    with _explaining_errors(path):
        schema = pyarrow.parquet.read_schema(path)
        names = schema.empty_table().flatten().schema.names  # of structures those of their parts, one level deep
        chosen = _find(names, wanted, str(path))
        number = 0
        for table in batches(path, chosen):
            flat = table.flatten()
            for row in zip(*(flat.column(name).to_pylist() for name in chosen), strict=True):
                yield (number := number + 1), row


def _batches(path: Path, columns: list[str]) -> Iterator[Any]:
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    with pyarrow.parquet.ParquetFile(path) as file:
        yield from map(pyarrow.table, file.iter_batches(BATCH_ROWS, columns=columns))


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    import pyarrow  # noqa: PLC0415 - slow to import

    try:
        yield
    except (UnicodeDecodeError, pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is not a whole Parquet file of UTF-8 text ({reason}): fetch it again.") from error
