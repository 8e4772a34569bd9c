"""export.json: what an export says about itself to the programs that use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Self

from nmt.errors import UserError
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.layout import EXPORT_RECORD
from nmt.storage.files import checksums, is_plain_name, read_json, write_json

FOR_PEOPLE = ".md"
"""The suffix of files that no program reads."""


@dataclass(frozen=True, slots=True)
class VerificationRecord:
    """How the export compared with the model that it was made from."""

    sentences: int
    same: int
    """The number of identical translations."""
    log_probability_difference: float
    """Mean absolute difference per word piece."""
    quality: Mapping[str, float] | None
    """BLEU and chrF of the model and of the export; None if there were no references."""
    summary: str
    """All of this in one line."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read the field `verified` of export.json."""
        return cls(
            int(content.get("sentences", 0)),
            int(content.get("same", 0)),
            float(content.get("log_probability_difference", 0.0)),
            content.get("quality"),
            str(content.get("said", "")),
        )

    def to_json(self) -> dict[str, object]:
        """Return the field as export.json holds it."""
        return {
            "sentences": self.sentences,
            "same": self.same,
            "log_probability_difference": self.log_probability_difference,
            "quality": None if self.quality is None else dict(self.quality),
            "said": self.summary,
        }


@dataclass(frozen=True, slots=True)
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
    verified: VerificationRecord
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""
    files: tuple[str, ...] = ()
    """Names of the other files of the export, with `/` after those of folders."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Their checksums, but for those of text for people, which may be edited."""

    def paths(self, folder: Path) -> list[Path]:
        """Return the files of the export in `folder`, export.json included."""
        return [folder / name for name in sorted({EXPORT_RECORD, *self.files})]

    def write(self, folder: Path) -> None:
        """Write export.json into a folder: the names and checksums of its files, and no path of this machine."""
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        names = {file: file.relative_to(folder).as_posix() for file in files}
        sealed = [file for file in files if file.suffix != FOR_PEOPLE]
        listed = replace(
            self,
            files=tuple(names.values()),
            sha256=dict(zip((names[file] for file in sealed), checksums(sealed), strict=True)),
            checkpoint=_without_folder(self.checkpoint),
            origin=self.origin and _without_folder(self.origin),
        )
        write_json(folder / EXPORT_RECORD, listed.to_json())

    def verify(self, folder: Path) -> None:
        """Refuse an export whose files are not those that were written."""
        paths = [folder / name for name in self.sha256]
        if missing := [path for path in paths if not path.is_file()]:
            raise UserError(f"{missing[0]} is missing: copy the export again, or run `make export` again")
        for path, found, written in zip(paths, checksums(paths), self.sha256.values(), strict=True):
            if found != written:
                raise UserError(f"{path} is damaged or was changed: copy the export again, or run `make export` again")

    def to_json(self) -> dict[str, object]:
        """Return the content of export.json."""
        return {
            "nmt": self.nmt,
            "target": self.target,
            "quantization": self.quantization,
            "languages": list(self.languages),
            "positions": self.positions,
            "checkpoint": self.checkpoint.to_json(),
            "verified": self.verified.to_json(),
            "origin": None if self.origin is None else self.origin.to_json(),
            "files": list(self.files),
            "sha256": dict(self.sha256),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read the content of export.json; raise KeyError, TypeError or ValueError if it is damaged."""
        source, target = content["languages"]
        files, sha256 = tuple(content.get("files", ())), dict(content.get("sha256", {}))
        if not all(isinstance(name, str) and _stays_inside(name) for name in (*files, *sha256)):
            raise ValueError("a name leads out of the folder")
        return cls(
            nmt=str(content.get("nmt", "")),
            target=str(content["target"]),
            quantization=str(content["quantization"]),
            languages=(str(source), str(target)),
            positions=int(content["positions"]),
            checkpoint=CheckpointRecord.from_json(content["checkpoint"]),
            verified=VerificationRecord.from_json(content.get("verified", {})),
            origin=CheckpointRecord.from_json(content["origin"]) if content.get("origin") else None,
            files=files,
            sha256=sha256,
        )


def _stays_inside(name: str) -> bool:
    """Return whether a name leads to a file in the folder of the export or in one of its folders."""
    return all(map(is_plain_name, name.split("/")))


def _without_folder(record: CheckpointRecord) -> CheckpointRecord:
    """Return the record of a checkpoint without the folder that it is in, which may be private."""
    return replace(record, path=PurePath(record.path).name)


def read_export_record(folder: Path) -> ExportRecord:
    """Read the record of the export in a folder."""
    file = folder / EXPORT_RECORD
    try:
        return ExportRecord.from_json(read_json(file))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file} is not the record of an export: run `make export` again") from error
