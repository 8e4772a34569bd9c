"""Tab-separated values: a pair per line."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.data.sources.cells import find_columns
from nmt.data.sources.file_format import PairFormat
from nmt.data.sources.source import Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import read_lines


def pairs(path: Path, _: Languages, columns: Sequence[str]) -> Iterator[Pair]:
    """Yield the pairs of a file with two columns, or of the `columns` that its first line names."""
    lines = enumerate(read_lines(path), 1)
    names = next(lines, (1, ""))[1].split("\t") if columns else []
    source, target = map(names.index, find_columns(names, columns, columns, str(path))) if columns else (0, 1)
    expected = len(names) or 2
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != expected:
            rule = f"the first line names {expected}" if columns else "two are needed: source, tab, target"
            raise UserError(f"{path}, line {number}: {len(cells)} column(s), but {rule}.")
        yield cells[source].rstrip("\r"), cells[target].rstrip("\r")


FORMAT = PairFormat("tsv", (".tsv",), pairs)
