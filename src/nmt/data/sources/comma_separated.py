"""Comma-separated values whose first row names the columns."""

import csv
from collections.abc import Iterator
from pathlib import Path

from nmt.data.sources.cells import cell_text, check_score_column, find_columns
from nmt.data.sources.scores import cell_score
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES, read_lines

MAX_ROW_CHARACTERS = MAX_LINE_BYTES
"""The longest row allowed: a quote that is never closed is refused before it fills the memory."""


def pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file; a quoted cell may span several lines."""
    rows = _rows(path)
    _, names = next(rows, (0, []))
    source, target = (names.index(each) for each in find_columns(names, languages, columns.sides, str(path)))
    if columns.score:
        check_score_column(names, columns.score, str(path))
    for number, row in rows:
        if len(row) != len(names):
            raise UserError(f"{path}, line {number}: {len(row)} cells, but the first row names {len(names)} columns.")
        pair = cell_text(row[source]), cell_text(row[target])
        if columns.score:
            score = row[names.index(columns.score)].strip()
            yield (*pair, cell_score(score, f"{path}, line {number}: {columns.score}"))
        else:
            yield pair


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the number of the line on which it ends."""
    row_size = 0

    def limited_lines() -> Iterator[str]:
        nonlocal row_size
        for line in read_lines(path):
            row_size += len(line) + 1
            if row_size > MAX_ROW_CHARACTERS:
                raise UserError(
                    f"{path}: the row that ends at line {reader.line_num + 1} or later is longer than "
                    f"{MAX_ROW_CHARACTERS:,} characters: is a quote not closed?"
                )
            yield line + "\n"

    csv.field_size_limit(MAX_ROW_CHARACTERS)
    reader = csv.reader(limited_lines(), strict=True)
    try:
        for row in reader:
            row_size = 0
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not comma-separated values ({error}).") from error
