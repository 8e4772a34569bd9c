"""Format tables for a terminal and for Markdown."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table: the first column aligned left, the others right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        first = row[0].ljust(widths[0])
        others = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        return f"| {' | '.join([first, *others])} |"

    rule = [":".ljust(widths[0], "-"), *(":".rjust(width, "-") for width in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, rows)])
