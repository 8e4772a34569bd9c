"""export.json: what an export says about itself to the programs that use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Self

from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.layout import EXPORT_RECORD
from nmt.storage.files import checksums, is_plain_name, read_json, record_of, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """The content of export.json."""

    nmt: str
    """Version of nmt that wrote the export."""
    target: str
    quantization: str
    languages: tuple[str, str]
    """Source and target language."""
    positions: int
    """Longest sentence that the export can translate, in word pieces."""
    checkpoint: CheckpointRecord
    verified: str
    """How the export compared with the model that it was made from, in one line."""
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the other files, by names with `/` after those of folders; README.md may be edited and has none."""

    def write(self, folder: Path) -> None:
        """Write export.json into a folder: the checksums of its files, and no path of this machine."""
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".md")
        names = [file.relative_to(folder).as_posix() for file in files]
        content = {
            "nmt": self.nmt,
            "target": self.target,
            "quantization": self.quantization,
            "languages": list(self.languages),
            "positions": self.positions,
            "checkpoint": _without_folder(self.checkpoint),
            "origin": self.origin and _without_folder(self.origin),
            "verified": self.verified,
            "sha256": dict(zip(names, checksums(files), strict=True)),
        }
        write_json(folder / EXPORT_RECORD, content)

    def check_files(self, folder: Path) -> None:
        """Refuse an export whose files are not those that were written."""
        paths = [folder / name for name in self.sha256]
        if missing := [path for path in paths if not path.is_file()]:
            raise UserError(f"{missing[0]} is missing: copy the export again, or run `make export` again")
        for path, found, written in zip(paths, checksums(paths), self.sha256.values(), strict=True):
            if found != written:
                raise UserError(f"{path} is damaged or was changed: copy the export again, or run `make export` again")

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read the content of export.json; raise KeyError, TypeError or ValueError if it is damaged."""
        source, target = content["languages"]
        sha256 = dict(content["sha256"])
        if not all(is_plain_name(part) for name in sha256 for part in name.split("/")):
            raise ValueError("a name leads out of the folder")
        return cls(
            nmt=str(content["nmt"]),
            target=str(content["target"]),
            quantization=str(content["quantization"]),
            languages=(str(source), str(target)),
            positions=int(content["positions"]),
            checkpoint=record_of(CheckpointRecord, content["checkpoint"]),
            origin=record_of(CheckpointRecord, content["origin"]) if content.get("origin") else None,
            verified=str(content["verified"]),
            sha256=sha256,
        )


def _without_folder(record: CheckpointRecord) -> dict[str, object]:
    """Return the record of a checkpoint without the folder that it is in, which may be private."""
    return replace(record, path=PurePath(record.path).name).to_json()


def read_export_record(folder: Path) -> ExportRecord:
    """Read the record of the export in a folder."""
    file = folder / EXPORT_RECORD
    try:
        return ExportRecord.from_json(read_json(file))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file} is not the record of an export: run `make export` again") from error
