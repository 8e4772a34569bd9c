"""How far a long step is: a bar on a terminal, a line now and then in a log."""

import sys
import time
from types import TracebackType

from tqdm import tqdm

EVERY_SECONDS = 60


class PairProgress:
    """Counts pairs as they are done."""

    def __init__(self, name: str, total: int | None = None) -> None:
        """Begin a step of `total` pairs, where that is known."""
        self._name = name
        self._total = total
        self._done = 0
        self._started = self._said = time.monotonic()
        self._bar = tqdm(desc=name, total=total, unit=" pairs", unit_scale=True, leave=False, disable=None)

    def __enter__(self) -> "PairProgress":
        """Show the bar while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.close()

    def advance(self, pairs: int) -> None:
        """Count more pairs."""
        self._done += pairs
        self._bar.update(pairs)
        now = time.monotonic()
        if self._bar.disable and now - self._said > EVERY_SECONDS:
            self._said = now
            total = f" of {self._total:,}" if self._total else ""
            rate = self._done / (now - self._started)
            print(f"{self._name}: {self._done:,}{total} pairs, {rate:,.0f} a second", file=sys.stderr, flush=True)
