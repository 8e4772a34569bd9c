"""Log the events of a run to metrics.jsonl, and to the services that draw its curves."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nmt.errors import UserError, exit_code
from nmt.runs.layout import RunLayout
from nmt.runs.listener import Listener, worked
from nmt.runs.metrics import truncate_after


class NullTracker:
    """A tracker that logs nothing, for all processes but the main one."""

    def log(self, event: str, step: int, **fields: Any) -> None:
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
    """Writes events to the run's metrics.jsonl, and passes them on to listeners."""

    def __init__(self, run_folder: Path, step: int) -> None:
        """Open a run's metrics; drop events of steps after `step`, because they will be logged again."""
        self.listeners: Sequence[Listener] = ()
        self._path = RunLayout(run_folder).metrics
        run_folder.mkdir(parents=True, exist_ok=True)
        truncate_after(self._path, step)
        try:
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def log(self, event: str, step: int, **fields: Any) -> None:
        """Write one event immediately."""
        line = json.dumps(_json_value({"event": event, "step": step, "time": time.time(), **fields}), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        self.listeners = [each for each in self.listeners if worked(each, each.log, event, step, fields)]

    def close(self, exit_code: int = 0) -> None:
        """Close the file and the listeners."""
        with suppress(OSError):  # every event was flushed, and errors have been reported
            self._file.close()
        for each in self.listeners:
            worked(each, each.close, exit_code)
        self.listeners = ()


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
