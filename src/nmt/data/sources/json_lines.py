"""JSON lines: one object per line, with the two sides under the names of columns or in the Hub's form."""

import json
from collections.abc import Iterator
from pathlib import Path

from nmt.data.sources.cells import (
    MAX_LETTERS_SHOWN,
    TRANSLATION,
    cell_text,
    check_score_column,
    find_columns,
)
from nmt.data.sources.scores import cell_score
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import read_lines


def pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file; lines of white space are skipped."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        row = _parse(line, where)
        nested = row.get(TRANSLATION)
        sides = nested if isinstance(nested, dict) and not columns.sides else row
        source, target = find_columns(list(sides), languages, columns.sides, where)
        pair = _text(sides[source], f"{where}: {source}"), _text(sides[target], f"{where}: {target}")
        if columns.score:
            check_score_column(list(row), columns.score, where)
            yield (*pair, cell_score(row[columns.score], f"{where}: {columns.score}"))
        else:
            yield pair


def _parse(line: str, where: str) -> dict[str, object]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error}): give one object per line.") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: not a JSON object with the two sides as keys: give one object per line.")
    return row


def _text(value: object, where: str) -> str:
    if not isinstance(value, str | None):
        raise UserError(f"{where} holds {json.dumps(value)[:MAX_LETTERS_SHOWN]}, not text.")
    text = cell_text(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{where} holds half of a surrogate pair, which is not a character: correct it.") from error
    return text
