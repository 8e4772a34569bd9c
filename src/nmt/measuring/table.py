"""The table of what a search measured, as text."""

from collections.abc import Sequence

from nmt.config.keys import written
from nmt.measuring.search import Outcome, Row, Settings

HEAD = f"{'choice':<24}{'candidate':<12}{'tokens/s':>12}{'ratio':>8}  note"


def as_text(outcome: Outcome) -> str:
    """Return the table, in which an asterisk marks what is chosen, and the chosen settings."""
    chosen = " ".join(f"{setting}={written(value)}" for setting, value in outcome.settings.items())
    return "\n".join([*as_lines(outcome.table, outcome.settings), f"chosen: {chosen or 'the defaults'}"])


def as_lines(rows: Sequence[Row], chosen: Settings) -> list[str]:
    """Return the head of the table, and a line per row."""
    return [HEAD, *(_line(row, chosen) for row in rows)]


def _line(row: Row, chosen: Settings) -> str:
    speed = "-" if row.tokens_per_second is None else f"{row.tokens_per_second:,.0f}"
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    candidate = "" if row.candidate is None else written(row.candidate)
    mark = "*" if row.candidate is not None and chosen.get(row.setting) == row.candidate else ""
    return f"{row.setting:<24}{candidate + mark:<12}{speed:>12}{ratio:>8}  {row.note}".rstrip()
