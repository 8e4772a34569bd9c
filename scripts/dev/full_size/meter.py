"""Measure the time, processor time and peak memory of the tasks of a program."""

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from shared.processes import cpu_seconds, family, own_share_of_memory

SAMPLING_SECONDS = 0.25


@dataclass(slots=True)
class Use:
    """The resources of a task, over this process and its descendants."""

    name: str
    pairs: int
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def row(self) -> str:
        """Return a line of the table."""
        rates = [
            f"{self.pairs / max(each, 0.001):,.0f}" if self.pairs else "" for each in (self.seconds, self.cpu_seconds)
        ]
        return (
            f"{self.name:<14}{f'{self.pairs:,}' if self.pairs else '':>12}{self.seconds:>10.2f}{rates[0]:>12}"
            f"{rates[1]:>15}{self.cpu_seconds / max(self.seconds, 0.001):>11.2f}{self.peak_bytes / 2**30:>10.2f}"
        )


HEAD = f"{'task':<14}{'pairs':>12}{'seconds':>10}{'pairs/s':>12}{'pairs/CPU-s':>15}{'CPUs busy':>11}{'peak GiB':>10}"


class Meter:
    """Measures this process and its descendants, one task at a time, from `begin` to `end`."""

    def __init__(self) -> None:
        """Start without a task."""
        self.uses: list[Use] = []
        self._began = self._cpu_began = self._cpu = 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample_repeatedly, daemon=True)

    def __enter__(self) -> "Meter":
        """Start sampling."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop sampling."""
        self._stopped.set()
        self._thread.join()

    def begin(self, name: str, pairs: int = 0) -> None:
        """Start a task; `pairs` is 0 if it has no rate."""
        with self._lock:
            self.uses.append(Use(name, pairs))
        self._sample()
        self._began, self._cpu_began = time.perf_counter(), self._cpu

    def end(self) -> None:
        """End the task."""
        seconds = time.perf_counter() - self._began
        self._sample()
        self.uses[-1].seconds, self.uses[-1].cpu_seconds = seconds, self._cpu - self._cpu_began

    def _sample_repeatedly(self) -> None:
        while not self._stopped.wait(SAMPLING_SECONDS):
            self._sample()

    def _sample(self) -> None:
        with self._lock:
            memory, cpu = 0, 0.0
            for process in family(os.getpid()):
                with suppress(OSError, ValueError, IndexError):  # the process may end meanwhile
                    memory += own_share_of_memory(process)
                    cpu += cpu_seconds(process)
            self._cpu = max(self._cpu, cpu)
            if self.uses:
                self.uses[-1].peak_bytes = max(self.uses[-1].peak_bytes, memory)
