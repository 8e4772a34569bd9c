"""The protocol between the benchmark and its drivers: a driver reads a job from a JSON file and writes its result.

A driver runs in the virtual environment of its engine, so it can only import those modules of nmt whose dependencies
are installed there.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nmt.errors import UserError

Job = dict[str, Any]
Result = dict[str, Any]


def serve(**handlers: Callable[[Job], Result]) -> None:
    """Read the job file that the command line names, do the job by its kind, and write the result."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        result = handlers[job["kind"]](job)
    except UserError as reason:
        result = {"refused": str(reason)}
    unit = 1 if sys.platform == "darwin" else 1024
    result.setdefault("memory", unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


class Measurement:
    """Count tokens and updates of a training loop for `seconds`, after `warmup` seconds that do not count.

    It starts at the end of one update and stops at the end of another.
    """

    def __init__(self, job: Job, wait: Callable[[], None] = lambda: None) -> None:
        """Read both durations from the job; `wait` returns when a device has done its work."""
        self._wait, self._warmup, self._seconds = wait, float(job["warmup"]), float(job["seconds"])
        self._first = self._start = 0.0
        self.result = {"source_tokens": 0, "target_tokens": 0, "updates": 0, "seconds": 0.0}

    def update(self, source: int, target: int) -> bool:
        """Count an update that just ended, by its tokens; return true when the measurement is complete."""
        now = time.perf_counter()
        self._first = self._first or now
        if not self._start:
            if now - self._first >= self._warmup:
                self._wait()
                self._start = time.perf_counter()
            return False
        for name, count in (("source_tokens", source), ("target_tokens", target), ("updates", 1)):
            self.result[name] += count
        if now - self._start < self._seconds:
            return False
        self._wait()
        self.result["seconds"] = time.perf_counter() - self._start
        return True
