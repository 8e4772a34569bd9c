"""What evaluations and exports record of the checkpoint that they used."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any, Self

from nmt.errors import UserError
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.runs.layout import WEIGHTS


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """The facts by which the same weights are found again."""

    name: str
    step: int
    sha256: str = ""
    """Checksum of the weights."""
    path: str = ""
    averaged_from: tuple[str, ...] = ()
    """The checkpoints that it is the average of."""
    ensemble: tuple["CheckpointRecord", ...] = ()
    """The other members, if it translated in an ensemble."""
    export: str = ""
    """The folder of the export, if an export of the checkpoint translated."""
    quantization: str = ""
    """The number format of that export's weights."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Describe a checkpoint."""
        return cls(
            name=checkpoint.path.name,
            step=checkpoint.step,
            sha256=checkpoint.meta.files[WEIGHTS],
            path=str(checkpoint.path),
            averaged_from=tuple(checkpoint.meta.averaged_from),
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a record; raise KeyError, TypeError or ValueError if it is damaged."""
        ensemble = tuple(cls.from_json(member) for member in content.get("ensemble", ()))
        averaged_from = tuple(map(str, content.get("averaged_from", ())))
        texts = {key: str(content.get(key, "")) for key in ("sha256", "path", "export", "quantization")}
        name, step = str(content["name"]), int(content["step"])
        return cls(name, step, averaged_from=averaged_from, ensemble=ensemble, **texts)

    @property
    def summary(self) -> str:
        """The name and step in a few words, without the folder, which may be private."""
        return f"{PurePath(self.name).name}, step {self.step:,}"

    def to_json(self) -> dict[str, object]:
        """Return the record as JSON holds it, without the fields that are empty."""
        fields = asdict(replace(self, ensemble=()))
        ensemble = [member.to_json() for member in self.ensemble]
        return {key: value for key, value in (fields | {"ensemble": ensemble}).items() if value or key == "step"}


def origin_of(meta: CheckpointMeta) -> CheckpointRecord | None:
    """Return the record of the model that a checkpoint's run began from; None if it began with random weights."""
    try:
        return CheckpointRecord.from_json(meta.origin) if meta.origin else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the record of the model that a checkpoint began from is damaged ({error}): restore it"
        ) from error
