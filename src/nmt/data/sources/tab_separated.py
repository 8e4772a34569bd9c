"""Tab-separated values: a pair per line; empty lines are none."""

from collections.abc import Iterator
from pathlib import Path

from nmt.data.sources.cells import check_score_column, find_columns
from nmt.data.sources.scores import cell_score
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import read_lines


def pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file with two columns, or of the `columns` that its first line names."""
    lines = enumerate(read_lines(path), 1)
    has_names = bool(columns.sides or columns.score)
    names = next(lines, (1, ""))[1].split("\t") if has_names else ["", ""]
    source, target = map(names.index, find_columns(names, languages, columns.sides, str(path))) if has_names else (0, 1)
    if columns.score:
        check_score_column(names, columns.score, str(path))
    for number, line in lines:
        if not line.rstrip("\r"):
            continue
        cells = line.split("\t")
        if len(cells) != len(names):
            rule = f"the first line names {len(names)}" if has_names else "two are needed: source, tab, target"
            raise UserError(f"{path}, line {number}: {len(cells)} column(s), but {rule}.")
        pair = cells[source].rstrip("\r"), cells[target].rstrip("\r")
        if number == 1 and set(pair) == set(languages):
            names_given = ",".join(languages)
            raise UserError(
                f"{path}, line 1 names the languages: give data.columns=[{names_given}], or remove the line."
            )
        if columns.score:
            score = cells[names.index(columns.score)].strip()
            yield (*pair, cell_score(score, f"{path}, line {number}: {columns.score}"))
        else:
            yield pair
