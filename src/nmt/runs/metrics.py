"""Read the events of a run's metrics.jsonl."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import write_text


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


def event_of(content: Mapping[str, Any]) -> MetricsEvent:
    """Return the event in a line of metrics.jsonl; raise an error if one of the fields of all events is wrong."""
    figures = {name: value for name, value in content.items() if name not in ("event", "step", "time")}
    if not isinstance(content["step"], int):
        raise TypeError("step is not an integer")
    return MetricsEvent(str(content.get("event", "")), content["step"], float(content.get("time", 0.0)), figures)


def read_metrics(path: Path) -> list[MetricsEvent]:
    """Read the events of a metrics.jsonl, without a last line that was cut off when the run was killed."""
    return [event for _, event in _events(path)]


def truncate_after(path: Path, step: int) -> None:
    """Drop events of later steps from a metrics.jsonl, and a last line that was cut off when the run was killed."""
    if not path.exists():
        return
    kept = "".join(line + "\n" for line, event in _events(path) if event.step <= step)
    if kept.encode() != path.read_bytes():
        write_text(path, kept)


def _events(path: Path) -> list[tuple[str, MetricsEvent]]:
    """Return the lines of a metrics.jsonl with their events."""
    try:
        *lines, last = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}. Move it out of the way and run again") from error
    events = []
    for number, line in enumerate([*lines, last], start=1):
        try:
            event = event_of(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if number > len(lines):
                break
            raise UserError(f"{path}, line {number} is damaged: delete that line (the others are kept)") from error
        events.append((line.decode(), event))
    return events
