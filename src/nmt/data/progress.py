"""Show the progress of a long task: as a bar on a terminal, else as a line every minute."""

import sys
import time
from typing import Any

from tqdm import tqdm

SECONDS_PER_LINE = 60


class PairProgress:
    """Counts the pairs that are done."""

    def __init__(self, name: str, total: int | None = None) -> None:
        """Start a task of `total` pairs, if that is known."""
        self._name, self._total, self._done = name, total, 0
        self._started = self._last_line = time.monotonic()
        self._bar = tqdm(desc=name, total=total, unit=" pairs", unit_scale=True, leave=False, disable=None)

    def __enter__(self) -> "PairProgress":
        """Return this object; the bar is shown during the block."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Remove the bar."""
        self._bar.close()

    def advance(self, pairs: int) -> None:
        """Count more pairs."""
        self._done += pairs
        self._bar.update(pairs)
        now = time.monotonic()
        if self._bar.disable and now - self._last_line > SECONDS_PER_LINE:
            self._last_line = now
            total = f" of {self._total:,}" if self._total else ""
            rate = self._done / (now - self._started)
            print(f"{self._name}: {self._done:,}{total} pairs, {rate:,.0f} per second", file=sys.stderr, flush=True)
