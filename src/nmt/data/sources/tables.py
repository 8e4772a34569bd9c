"""Pairs from tables: which columns hold the two sides, and what becomes of a cell."""

import csv
import json
from collections.abc import Iterator, Sequence
from typing import Any

from nmt.errors import UserError, nearest

TRANSLATION = "translation"
"""The Hub's column of translations: a structure with one text per language."""
MOST_NAMES, MOST_LETTERS = 20, 40
"""How many columns an error names, and how much of each name."""


def sides_of(names: Sequence[str], languages: Sequence[str], columns: Sequence[str], where: str) -> tuple[str, str]:
    """Choose the columns of the source and the target side: `columns`, or else those named after the languages."""
    wanted = columns or languages
    missing = [name for name in wanted if name not in names]
    if missing and columns:
        raise UserError(f"{where} has no column {missing[0]} (data.columns): {_hint(missing[0], names)}")
    if missing:
        raise UserError(
            f"{where} has the columns {_shortened(names)}, but neither `{TRANSLATION}` of the Hub's form nor "
            f"{' and '.join(languages)}: name the source and the target column with data.columns=[SOURCE,TARGET]"
        )
    for name in wanted:
        if names.count(name) > 1:
            raise UserError(f"{where} has several columns {name}: leave one.")
    return wanted[0], wanted[1]


def cell_text(cell: str | None) -> str:
    r"""Return a cell's text; between its lines, however they ended, stands one \n, and nothing for an empty line.

    Lines end where str.splitlines ends them: a table has no lines of its own that would say it otherwise.
    """
    lines = (cell or "").splitlines()
    return lines[0] if len(lines) == 1 else "\n".join(line for line in lines if line)


def on_one_line(text: str) -> str:
    """Put the lines of a cell's text on one, with spaces between."""
    return text.replace("\n", " ")


def json_pairs(
    lines: Iterator[str], languages: Sequence[str], columns: Sequence[str], name: str
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of lines that are JSON objects, with the columns as keys or in the Hub's form."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        row = _object(line, where)
        nested = row.get(TRANSLATION)
        if isinstance(nested, dict) and not columns:
            row = nested
        source, target = sides_of(list(row), languages, columns, where)
        yield _json_text(row[source], f"{where}: {source}"), _json_text(row[target], f"{where}: {target}")


def csv_pairs(
    lines: Iterator[str], languages: Sequence[str], columns: Sequence[str], name: str, longest: int
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a table of comma-separated values whose first row names the columns.

    Args:
        lines: Its lines, without their ends; a quoted cell may span several.
        languages: The columns, if `columns` names none.
        columns: The source and the target column.
        name: What errors call the table.
        longest: The largest number of characters allowed in a row.
    """
    rows = _csv_rows(lines, name, longest)
    _, names = next(rows, (0, []))
    places = [names.index(each) for each in sides_of(names, languages, columns, name)]
    for number, row in rows:
        if len(row) != len(names):
            raise UserError(f"{name}, line {number}: {len(row)} cells, but the first row names {len(names)} columns.")
        yield cell_text(row[places[0]]), cell_text(row[places[1]])


def _csv_rows(lines: Iterator[str], name: str, longest: int) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the line that each ends on; a quote that is never closed does not fill the memory."""
    size = 0

    def measured() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line) + 1
            if size > longest:
                raise UserError(
                    f"{name}: the row that ends at line {reader.line_num + 1} or later is longer than {longest:,} "
                    "characters: is a quote not closed?"
                )
            yield line + "\n"

    csv.field_size_limit(longest)
    reader = csv.reader(measured(), strict=True)
    try:
        for row in reader:
            size = 0
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{name}, line {reader.line_num}: not comma-separated values ({error}).") from error


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error}): give one object per line.") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: not a JSON object with the two sides as keys: give one object per line.")
    return row


def _json_text(value: Any, where: str) -> str:
    if not isinstance(value, str | None):
        raise UserError(f"{where} holds {json.dumps(value)[:MOST_LETTERS]}, not text.")
    text = cell_text(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{where} holds half of a surrogate pair, which is no character: mend it.") from error
    return text


def _hint(name: str, names: Sequence[str]) -> str:
    return nearest(name, [each[:MOST_LETTERS] for each in names[:MOST_NAMES]])


def _shortened(names: Sequence[str]) -> str:
    more = [f"... ({len(names):,} in all)"] if len(names) > MOST_NAMES else []
    return ", ".join([*(name[:MOST_LETTERS] for name in names[:MOST_NAMES]), *more])
