"""Identify the weights that translations come from, in evaluations and exports."""

from dataclasses import dataclass
from typing import Any, Self

from nmt.runs.checkpoints import Checkpoint
from nmt.runs.layout import WEIGHTS


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """What it takes to find the same weights again."""

    name: str
    path: str
    step: int
    sha256: str
    """Checksum of the weights."""
    averaged_from: tuple[str, ...] = ()
    """Names of the checkpoints that were averaged."""
    ensemble: tuple["CheckpointRecord", ...] = ()
    """The other checkpoints that decode together with this one."""
    export: str = ""
    """Folder of the export, if one was made from the checkpoint."""
    quantization: str = ""
    """Number format of the export's weights."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Describe a checkpoint."""
        return cls(
            name=checkpoint.path.name,
            path=str(checkpoint.path),
            step=checkpoint.step,
            sha256=checkpoint.meta.files[WEIGHTS],
            averaged_from=tuple(checkpoint.meta.averaged_from),
        )

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `as_json` returned for a checkpoint that is neither an ensemble nor an export.

        Raises:
            ValueError: if the value is something else.
        """
        match value:
            case {"name": str(name), "path": str(path), "step": int(step), "sha256": str(sha256)}:
                averaged_from = value.get("averaged_from", [])
                if isinstance(averaged_from, list):
                    return cls(name=name, path=path, step=step, sha256=sha256, averaged_from=tuple(averaged_from))
        raise ValueError(f"{value!r} does not identify a checkpoint")

    def as_json(self) -> dict[str, object]:
        """Return the fields as JSON values, without empty ones."""
        fields: dict[str, object] = {
            "name": self.name,
            "path": self.path,
            "step": self.step,
            "sha256": self.sha256,
            "averaged_from": list(self.averaged_from),
            "ensemble": [member.as_json() for member in self.ensemble],
            "export": self.export,
            "quantization": self.quantization,
        }
        return {name: value for name, value in fields.items() if value not in ("", [])}
