"""Log the events of a run to metrics.jsonl and to the services that draw its curves, and read them."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.environment import environment
from nmt.runs.layout import RunLayout
from nmt.runs.services import Service, open_services
from nmt.storage.files import write_json, write_text


class Tracker:
    """Writes events to a run's metrics.jsonl, and passes them on to services."""

    def __init__(self, path: Path | None = None, step: int = 0, services: Sequence[Service] = ()) -> None:
        """Open a metrics.jsonl, if any; drop events of steps after `step`, because they will be logged again."""
        self._path, self._services = path, services
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _truncate_after(path, step)

    def log(self, event: str, step: int, **fields: object) -> None:
        """Write one event immediately."""
        if self._path is not None:
            nulls = {key: None for key, each in fields.items() if isinstance(each, float) and not math.isfinite(each)}
            line = json.dumps({"event": event, "step": step, "time": time.time(), **fields, **nulls}, allow_nan=False)
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            except OSError as error:
                raise UserError(
                    f"cannot write {self._path}: {error.strerror}. Free some space or choose another folder, and run "
                    "again"
                ) from error
        self._services = [each for each in self._services if each.tell(each.log, event, step, fields)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._services:
            each.tell(each.close, 0 if error is None else 1)


def start_tracker(config: Config, step: int, origin: CheckpointRecord | None, precision: str) -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    write_json(layout.environment, environment(config, config.data_folder, origin, precision))
    return Tracker(layout.metrics, step, open_services(config, step))


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
    """Read the events of a metrics.jsonl, if there is one, without a last line that was cut off by a kill."""
    return [event for _, event in _events(path)]


def _truncate_after(path: Path, step: int) -> None:
    """Drop events of later steps from a metrics.jsonl, and a last line that was cut off when the run was killed."""
    kept = "".join(line + "\n" for line, event in _events(path) if event.step <= step)
    if not path.exists() or kept.encode() != path.read_bytes():
        write_text(path, kept)


def _events(path: Path) -> list[tuple[str, MetricsEvent]]:
    """Return the lines of a metrics.jsonl with their events."""
    lines, events = path.read_bytes().split(b"\n") if path.exists() else [], []
    for number, line in enumerate(lines, start=1):
        try:
            events.append((line.decode(), _event(json.loads(line))))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if number < len(lines):
                raise UserError(f"{path}, line {number} is damaged: delete that line (the others are kept)") from error
    return events


def _event(content: dict[str, Any]) -> MetricsEvent:
    figures = {name: value for name, value in content.items() if name not in ("event", "step", "time")}
    if not isinstance(content["step"], int):
        raise TypeError("step is not an integer")
    return MetricsEvent(str(content.get("event", "")), content["step"], float(content.get("time", 0.0)), figures)
