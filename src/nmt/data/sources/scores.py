"""Scores of pairs in the cells of tables that are text."""

import math

from nmt.data.sources.cells import MAX_LETTERS_SHOWN
from nmt.errors import UserError


def cell_score(cell: object, where: str) -> float:
    """Return the number in a cell, which may be text; not a number if the cell is empty."""
    if cell in (None, ""):
        return math.nan
    try:
        if isinstance(cell, str | int | float) and not isinstance(cell, bool):
            return float(cell)
    except (ValueError, OverflowError):
        pass
    raise UserError(f"{where} holds {str(cell)[:MAX_LETTERS_SHOWN]}, not a number: correct it, or name another column.")
