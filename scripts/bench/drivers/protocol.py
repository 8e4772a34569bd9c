"""The protocol between the benchmark and its drivers: a driver reads a job from a JSON file and writes its result.

A driver runs in the virtual environment of its engine, so it can only import those modules of nmt whose dependencies
are installed there.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmt.errors import UserError

Job = dict[str, Any]
Result = dict[str, Any]


class RefusedError(Exception):
    """The reason why an engine cannot do a job."""


def serve(handlers: Mapping[str, Callable[[Job], Result]]) -> None:
    """Read the job file that the command line names, do the job and write its result."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        result = handlers[job["kind"]](job)
    except (RefusedError, UserError) as reason:
        result = {"refused": str(reason)}
    unit = 1 if sys.platform == "darwin" else 1024
    result.setdefault("memory", unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


class Measurement:
    """Count tokens and updates of a training loop for `seconds`, after `warmup` seconds that do not count."""

    def __init__(self, job: Job, wait: Callable[[], None] = lambda: None) -> None:
        """Read both durations from the job; `wait` returns when a device has done its work."""
        self._wait = wait
        self._warmup, self._seconds = float(job["warmup"]), float(job["seconds"])
        self._first = self._start = self._last = -1.0
        self._source = self._target = self._updates = 0

    def update(self, source: int, target: int) -> bool:
        """Count an update that just ended, by its tokens; return true when the measurement is complete.

        It starts at the end of one update and stops at the end of another.
        """
        now = time.perf_counter()
        if self._start >= 0:
            self._source, self._target, self._updates = self._source + source, self._target + target, self._updates + 1
            if now - self._start < self._seconds:
                return False
            self._wait()
            self._last = time.perf_counter()
            return True
        if self._first < 0:
            self._first = now
        if now - self._first >= self._warmup:
            self._wait()
            self._start = time.perf_counter()
        return False

    def result(self) -> Result:
        """Return the counted tokens, updates and seconds."""
        if not self._updates:
            raise RefusedError("it completed no update in time")
        counts = {"source_tokens": self._source, "target_tokens": self._target, "updates": self._updates}
        return {**counts, "seconds": self._last - self._start}
