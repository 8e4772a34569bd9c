"""What an export says of itself, for the programs that use it."""

from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.files import read_json

RECORD = "export.json"
_KEYS = ("target", "quantization", "languages", "positions", "checkpoint")


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of an export."""
    record = read_json(folder / RECORD)
    if not isinstance(record, dict) or any(key not in record for key in _KEYS):
        raise UserError(f"{folder / RECORD} is no record of an export: run `make export` again")
    return record
