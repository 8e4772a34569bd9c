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
from typing import Any, NamedTuple

from nmt.errors import UserError

Job = dict[str, Any]
Result = dict[str, Any]
Handler = Callable[[Job], Result]
Clock = Callable[[], float]
"""Returns seconds since some moment."""


class RefusedError(Exception):
    """The reason why an engine cannot do a job."""


class FinishedError(Exception):
    """Leaves an engine's own training loop when the measurement is complete."""


def serve(handlers: Mapping[str, Handler]) -> None:
    """Read the job file that the command line names, do the job and write its result."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        if job["kind"] not in handlers:
            raise RefusedError(f"its driver does not support {job['kind']}")
        result = handlers[job["kind"]](job)
    except (RefusedError, UserError) as reason:
        result = {"refused": str(reason)}
    unit = 1 if sys.platform == "darwin" else 1024
    of_children = unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result.setdefault("memory", max(peak_memory(), of_children))  # the largest process
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


def peak_memory() -> int:
    """Return the peak memory of this process in bytes; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def clock_of(job: Job) -> Clock:
    """Return the clock of the job: that of the process counts its CPU time, so that other programs do not matter."""
    return time.process_time if job.get("cpu_time") else time.perf_counter


class Counts(NamedTuple):
    """Numbers of tokens trained on, with end marks and without padding."""

    source: int
    target: int


class Measurement:
    """Count tokens and updates of a training loop for `seconds`, after `warmup` seconds that do not count."""

    def __init__(self, job: Job, clock: Clock | None = None, wait: Callable[[], None] = lambda: None) -> None:
        """Read both durations from the job; `wait` returns when a device has done its work."""
        self._wait = wait
        self._warmup, self._seconds = float(job["warmup"]), float(job["seconds"])
        self._clock = clock or clock_of(job)
        self._first = self._start = self._last = -1.0
        self._source = self._target = self._updates = 0

    def update(self, counts: Counts) -> bool:
        """Count an update that just ended; return true when the measurement is complete.

        It starts at the end of one update and stops at the end of another.
        """
        now = self._clock()
        if self._start >= 0:
            self._source += counts.source
            self._target += counts.target
            self._updates += 1
            if now - self._start < self._seconds:
                return False
            self._wait()
            self._last = self._clock()
            return True
        if self._first < 0:
            self._first = now
        if now - self._first >= self._warmup:
            self._wait()
            self._start = self._clock()
        return False

    def result(self) -> Result:
        """Return the counted tokens, updates and seconds."""
        if not self._updates:
            raise RefusedError("it completed no update in time")
        return {
            "source_tokens": self._source,
            "target_tokens": self._target,
            "seconds": self._last - self._start,
            "updates": self._updates,
        }
