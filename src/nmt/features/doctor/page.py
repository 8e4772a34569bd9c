"""The page about the check of a device: one HTML file that needs no network."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from nmt.features.doctor.documents import Line

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8886; vertical-align: top; }
.wrong { color: #b00020; font-weight: bold; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } .wrong { color: #ff8a80; } }
"""


def as_html(report: dict[str, Any], lines: Sequence[Line]) -> str:
    """Return the page about a report, with the lines of documents that it would replace."""
    name = escape(str(report["device"]["name"]))
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{name}</title>',
            f'<meta name="viewport" content="width=device-width">\n<style>{STYLE}</style>',
            f"<h1>{name}</h1>",
            *_table([report["device"]]),
            *(part for name, section in report["sections"].items() for part in _section(name, section)),
            "<h2>Lines of the documents that these results would replace</h2>",
            *_table([each._asdict() for each in lines]),
            "</html>\n",
        ]
    )


def _section(name: str, section: dict[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(name)}</h2>\n<p>{section['seconds']} seconds</p>"
    if section["error"]:
        yield f'<p class="wrong">failed: {escape(section["error"])}</p>'
    yield from _table(section["results"])


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a table with a column for each key of the rows; rows with other keys begin another table."""
    keys: list[str] = []
    for row in rows:
        if list(row) != keys:
            yield from ["</table>"] if keys else []
            keys = list(row)
            yield f"<table><tr>{''.join(f'<th>{escape(key)}</th>' for key in keys)}</tr>"
        mark = ' class="wrong"' if row.get("correct") is False or row.get("failure") else ""
        yield f"<tr{mark}>{''.join(f'<td>{escape(_text(value))}</td>' for value in row.values())}</tr>"
    yield from ["</table>"] if keys else []


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
