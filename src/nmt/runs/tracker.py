"""Log the events of a run to metrics.jsonl and to the services that draw its curves, and read them."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError, exit_code
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.environment import environment, read_environment
from nmt.runs.layout import RunLayout
from nmt.runs.services import Service, open_services, worked
from nmt.storage.files import write_json, write_text


class NullTracker:
    """A tracker that logs nothing, for all processes but the main one."""

    def log(self, event: str, step: int, **fields: object) -> None:
        """Log an event."""

    def close(self, exit_code: int = 0) -> None:
        """Log the end of the run with its exit code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(exit_code(error))


class Tracker(NullTracker):
    """Writes events to the run's metrics.jsonl, and passes them on to services."""

    def __init__(self, run_folder: Path, step: int, services: Sequence[Service] = ()) -> None:
        """Open a run's metrics; drop events of steps after `step`, because they will be logged again."""
        self._services, self._path = services, RunLayout(run_folder).metrics
        run_folder.mkdir(parents=True, exist_ok=True)
        _truncate_after(self._path, step)
        try:
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def log(self, event: str, step: int, **fields: object) -> None:
        """Write one event immediately."""
        line = json.dumps(_json_value({"event": event, "step": step, "time": time.time(), **fields}), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        self._services = [each for each in self._services if worked(each, each.log, event, step, fields)]

    def close(self, exit_code: int = 0) -> None:
        """Close the file and the services."""
        with suppress(OSError):  # every event was flushed, and errors have been reported
            self._file.close()
        for each in self._services:
            worked(each, each.close, exit_code)
        self._services = ()


def start_tracker(config: Config, step: int, origin: CheckpointRecord | None = None, precision: str = "") -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    described = environment(config, config.data_folder, origin, precision)
    if step and layout.environment.is_file():
        with suppress(UserError):  # a damaged one is replaced
            described = described.after(read_environment(layout.environment))
    write_json(layout.environment, asdict(described))
    return Tracker(layout.folder, step, open_services(config, step))


@dataclass(frozen=True, slots=True)
class MetricsEvent:
    """One line of metrics.jsonl."""

    event: str
    """The kind of event: start, train or valid."""
    step: int
    """The number of updates so far."""
    time: float
    """Seconds since 1970."""
    figures: Mapping[str, object]
    """The other fields by name, such as loss and perplexity; None stands for infinity and NaN."""

    def number(self, name: str) -> float | None:
        """Return a figure, or None if the event has no finite figure of this name."""
        value = self.figures.get(name)
        return value if isinstance(value, int | float) and math.isfinite(value) else None


def read_metrics(path: Path) -> list[MetricsEvent]:
    """Read the events of a metrics.jsonl, without a last line that was cut off when the run was killed."""
    return [event for _, event in _events(path)]


def _truncate_after(path: Path, step: int) -> None:
    """Drop events of later steps from a metrics.jsonl, and a last line that was cut off when the run was killed."""
    if not path.exists():
        return
    kept = "".join(line + "\n" for line, event in _events(path) if event.step <= step)
    if kept.encode() != path.read_bytes():
        write_text(path, kept)


def _events(path: Path) -> list[tuple[str, MetricsEvent]]:
    """Return the lines of a metrics.jsonl with their events."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}. Move it out of the way and run again") from error
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            event = event_of(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number} is damaged: delete that line (the others are kept)") from error
        events.append((line.decode(), event))
    return events


def event_of(content: Mapping[str, Any]) -> MetricsEvent:
    """Return the event in a line of metrics.jsonl; raise an error if one of the fields of all events is wrong."""
    figures = {name: value for name, value in content.items() if name not in ("event", "step", "time")}
    if not isinstance(content["step"], int):
        raise TypeError("step is not an integer")
    return MetricsEvent(str(content.get("event", "")), content["step"], float(content.get("time", 0.0)), figures)


def _json_value(value: Any) -> Any:
    """Return a value for JSON, with null for infinity and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return value


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path}: {error.strerror}. Free some space or choose another folder, and run again")
