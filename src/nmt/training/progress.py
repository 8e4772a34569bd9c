"""Show the progress of training: a bar on a terminal, a line now and then in a log file."""

import sys
import time
from types import TracebackType
from typing import Self

from tqdm import tqdm

LINE_SECONDS, LINE_SHARE = 60, 0.1
"""Between two lines of a log file pass at least this many seconds, and this share of the time since the start."""


class TrainingProgress:
    """Shows the progress of a run; only the main process shows anything."""

    def __init__(self, steps: int, done: int = 0, shown: bool = True) -> None:
        """Open the bar.

        Args:
            steps: The number of steps of the run.
            done: Steps that are done already.
            shown: Whether to show anything.
        """
        self._steps, self._done, self._begun_at, self._shown = steps, done, done, shown
        self._started = self._last_line = time.monotonic()
        self._validation = ""
        self._bar = tqdm(
            total=steps, initial=done, unit="step", dynamic_ncols=True, disable=None if shown else True, file=sys.stderr
        )

    def advance(self) -> None:
        """Count a step."""
        self._done += 1
        self._bar.update()

    def expect_end(self, step: int) -> None:
        """Take a step for the last one: the run may have no time for more."""
        self._steps = self._bar.total = step

    def show(self, text: str) -> None:
        """Show the latest figures, and those of the last validation: next to the bar, or in a line if one is due."""
        figures = "; ".join(filter(None, (text, self._validation)))
        if not self._bar.disable:
            self._bar.set_postfix_str(figures, refresh=False)
        elif self._line_is_due():
            self.write(f"step {self._done:,} of {self._steps:,}, {self._time_left()} left: {figures}")

    def show_validation(self, text: str) -> None:
        """Take the figures of a validation, which are shown from now on."""
        self._validation = text

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        if self._shown:
            self._bar.write(line, file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        """Stop updating the bar, and leave it on the screen."""
        self._bar.close()

    def _line_is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last_line < max(LINE_SECONDS, LINE_SHARE * (now - self._started)):
            return False
        self._last_line = now
        return True

    def _time_left(self) -> str:
        """Return the time until the end at the speed since the start."""
        seconds = (time.monotonic() - self._started) / max(1, self._done - self._begun_at)
        return tqdm.format_interval(seconds * (self._steps - self._done))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
