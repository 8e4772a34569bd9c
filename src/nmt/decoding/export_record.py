"""Read what an export says about itself, for the engines that load it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.decoding.checkpoint_record import CheckpointRecord
from nmt.errors import UserError
from nmt.storage.files import is_plain_name, read_json

RECORD = "export.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """The part of an export's record that it takes to load the export."""

    target: str
    """ctranslate2, huggingface or safetensors."""
    quantization: str
    """Number format of the weights."""
    languages: tuple[str, str]
    """Source and target language."""
    positions: int
    """Number of positions that the model has."""
    checkpoint: CheckpointRecord
    """The checkpoint that was exported."""
    files: tuple[str, ...] = ()
    """Names of the export's files, the record itself left out."""

    def paths(self, folder: Path) -> list[Path]:
        """Return the files of the export in `folder`, its record included."""
        return [folder / name for name in sorted({RECORD, *self.files})]


def read_record(folder: Path) -> ExportRecord:
    """Read the record of an export."""
    try:
        content = read_json(folder / RECORD)
        match content:
            case {
                "target": str(target),
                "quantization": str(quantization),
                "languages": [str(source), str(target_language)],
                "positions": int(positions),
                "checkpoint": checkpoint,
            } if _has_plain_files(content):
                return ExportRecord(
                    target=target,
                    quantization=quantization,
                    languages=(source, target_language),
                    positions=positions,
                    checkpoint=CheckpointRecord.from_json(checkpoint),
                    files=tuple(content.get("files", ())),
                )
    except ValueError:  # of the checkpoint
        pass
    raise UserError(f"{folder / RECORD} is not the record of an export: run `make export` again")


def _has_plain_files(content: Any) -> bool:
    """Check that every file that the record lists lies in the export's own folder."""
    files = content.get("files", [])
    return isinstance(files, list) and all(isinstance(name, str) and is_plain_name(name) for name in files)
