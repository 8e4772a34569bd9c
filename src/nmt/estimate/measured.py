"""Steps that were measured on a kind of device, beside their estimates: a file per kind in `outputs/devices/`."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.errors import ConfigError
from nmt.estimate.operation import Part

STEPS = "steps"
"""The key of the steps in the file, which has whatever else was found out about the device."""
MAX_BYTES = 4 << 20
"""The largest file that is read."""


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """How long the parts of a training step took."""

    device: str
    """The device by the name that it gives itself."""
    model: str
    parameters: int
    precision: str
    compiled: bool
    seconds: Mapping[Part, float]
    estimated: Mapping[Part, float]
    """The seconds by formula."""

    @property
    def ratios(self) -> dict[Part, float]:
        """The measured seconds of each part, divided by the estimated ones."""
        return {part: self.seconds[part] / self.estimated[part] for part in Part}

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON values."""
        return asdict(self)


def measured_file(runs: Path, kind: str) -> Path:
    """Return the path of the file of a kind of device, such as h100 or H100, in the folder of all runs."""
    return runs / "devices" / f"{kind.lower()}.json"


def nearest_step(path: Path, parameters: int, precision: str, *, compiled: bool) -> MeasuredStep | None:
    """Return the measured step of the model that is closest in size, of those computed in the same way."""
    alike = [each for each in _read(path) if (each.precision, each.compiled) == (precision, compiled)]
    return min(alike, key=lambda each: abs(math.log(each.parameters / parameters)), default=None)


def _read(path: Path) -> list[MeasuredStep]:
    """Return the steps of a file; none if it does not exist."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("it is too large")
        return [_step(each) for each in json.loads(path.read_text(encoding="utf-8"))[STEPS]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path} cannot be used ({' '.join(str(error).split())[:80]}): measure again, or delete it"
        ) from error


def _step(found: Mapping[str, Any]) -> MeasuredStep:
    seconds, estimated = (_positive(found[name]) for name in ("seconds", "estimated"))
    parameters, compiled = found["parameters"], found["compiled"]
    if type(parameters) is not int or parameters < 1 or type(compiled) is not bool:
        raise ValueError("parameters or compiled has another type")
    return MeasuredStep(
        str(found["device"]),
        str(found["model"]),
        parameters,
        str(found["precision"]),
        compiled,
        seconds,
        estimated,
    )


def _positive(found: Mapping[str, Any]) -> dict[Part, float]:
    seconds = {part: float(found[part]) for part in Part}
    if not all(0 < each < math.inf for each in seconds.values()):
        raise ValueError("a time is not positive")
    return seconds
