"""What an export says of itself, for the programs that use it."""

from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import is_plain_name, read_json

RECORD = "export.json"
_KEYS = ("target", "quantization", "languages", "positions", "checkpoint")


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of an export."""
    record = read_json(folder / RECORD)
    if not isinstance(record, dict) or any(key not in record for key in _KEYS) or not _has_plain_files(record):
        raise UserError(f"{folder / RECORD} is no record of an export: run `make export` again")
    return record


def export_files(folder: Path, record: dict[str, Any]) -> list[Path]:
    """Return the files of an export as its record lists them, and the record itself."""
    return [folder / name for name in sorted({RECORD, *record.get("files", [])})]


def _has_plain_files(record: dict[str, Any]) -> bool:
    """Whether no file of the record, if it lists any, leads out of the export's folder."""
    files = record.get("files", [])
    return isinstance(files, list) and all(isinstance(name, str) and is_plain_name(name) for name in files)
