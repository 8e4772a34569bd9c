"""Tables of parallel text: find the columns of the two sides and of scores, and turn cells into text."""

from collections.abc import Sequence

from nmt.errors import UserError, nearest

TRANSLATION = "translation"
"""The Hub's column of translations: a structure with one text per language."""
MAX_NAMES_SHOWN = 20
"""The largest number of columns that an error names."""
MAX_LETTERS_SHOWN = 40
"""The largest number of letters that an error shows of a name or a value."""


def find_columns(names: Sequence[str], languages: Sequence[str], columns: Sequence[str], where: str) -> tuple[str, str]:
    """Return the columns of the source and the target side.

    Args:
        names: All columns of the table.
        languages: The two languages; columns are named after them unless `columns` is given.
        columns: The two columns that the user names, or none.
        where: The table's name in errors.
    """
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


def check_score_column(names: Sequence[str], column: str, where: str) -> None:
    """Refuse a table that lacks the column of scores, or has several of that name."""
    if names.count(column) != 1:
        count = "no" if column not in names else "more than one"
        raise UserError(f"{where} has {count} column {column} (data.score_column): {_hint(column, names)}")


def cell_text(cell: str | None) -> str:
    r"""Return a cell's text with one \n between its lines and without empty lines.

    Lines end at the characters of str.splitlines, because a table does not define them.
    """
    lines = (cell or "").splitlines()
    return lines[0] if len(lines) == 1 else "\n".join(line for line in lines if line)


def _hint(name: str, names: Sequence[str]) -> str:
    return nearest(name, [each[:MAX_LETTERS_SHOWN] for each in names[:MAX_NAMES_SHOWN]])


def _shortened(names: Sequence[str]) -> str:
    more = [f"... ({len(names):,} in all)"] if len(names) > MAX_NAMES_SHOWN else []
    return ", ".join([*(name[:MAX_LETTERS_SHOWN] for name in names[:MAX_NAMES_SHOWN]), *more])
