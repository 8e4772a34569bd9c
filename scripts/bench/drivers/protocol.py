"""What harness and drivers say to each other: a job comes as a JSON file, and its result goes back as another.

A driver runs in the environment of its engine, so of this project it may use only what needs no more than is there.
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
Kind = Callable[[Job], Result]


class RefusedError(Exception):
    """The engine cannot do what is asked, and this is why."""


class OverError(Exception):
    """The timed stretch is over: raised out of an engine's own loop."""


def serve(kinds: Mapping[str, Kind]) -> None:
    """Do the job whose file the command line names."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        if job["kind"] not in kinds:
            raise RefusedError(f"has no driver for {job['kind']}")
        result = kinds[job["kind"]](job)
    except (RefusedError, UserError) as reason:
        result = {"refused": str(reason)}
    of_copies = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result.setdefault("memory", max(peak_memory(), of_copies))  # of the largest process
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


def peak_memory(process: int | str = "self") -> int:
    """Bytes that a process has held at most; 0 where the system does not say."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


class Counts(NamedTuple):
    """Tokens that were trained on, end marks counted, padding not."""

    source: int
    target: int


class Stretch:
    """Times a stretch of training: `warmup` seconds that do not count, then `seconds` that do."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.perf_counter) -> None:
        """Take the two times from a job."""
        self._warmup, self._seconds = float(job["warmup"]), float(job["seconds"])
        self._clock = clock
        self._first = self._start = self._last = -1.0
        self._source = self._target = self._updates = 0

    def update(self, counts: Counts) -> bool:
        """Note that an update is done; true once the stretch is over. It begins and ends with an update."""
        now = self._clock()
        if self._start >= 0:
            self._source += counts.source
            self._target += counts.target
            self._updates += 1
            self._last = now
            return now - self._start >= self._seconds
        if self._first < 0:
            self._first = now
        if now - self._first >= self._warmup:
            self._start = now
        return False

    def result(self) -> Result:
        """What was seen."""
        if not self._updates:
            raise RefusedError("made no update in the time it had")
        return {
            "source_tokens": self._source,
            "target_tokens": self._target,
            "seconds": self._last - self._start,
            "updates": self._updates,
        }
