"""The exports of a run, on its page."""

from html import escape
from os.path import relpath
from pathlib import Path

from nmt.features.exports.record import read_export_record
from nmt.runs.layout import EXPORT_RECORD, EXPORTS
from nmt.runs.section import Section, ShownRun


def links_section(run: ShownRun) -> Section | None:
    """Return a section that links the exports in the run's folder; None if there are none."""
    folders = sorted(record.parent for record in (run.config.run_folder / EXPORTS).glob(f"*/{EXPORT_RECORD}"))
    if not folders:
        return None
    items = "".join(_item(folder, run.config.run_folder) for folder in folders)
    return Section("exports", "Exports", f"<ul>{items}</ul>")


def _item(folder: Path, page_folder: Path) -> str:
    """Return the link to the card of an export, and how the export compares with the model."""
    record = read_export_record(folder)
    link = Path(relpath(folder / "README.md", page_folder)).as_posix()
    name = escape(f"{record.target}, {record.quantization}")
    return f'<li><a href="{escape(link)}">{name}</a>: {escape(record.verified.summary)}</li>'
