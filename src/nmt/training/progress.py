"""Show the progress of training: a bar on a terminal, a line now and then in a log file."""

import sys
import time

from tqdm import tqdm

LINE_SECONDS, LINE_SHARE = 60, 0.1
"""Between two lines of a log file pass at least this many seconds, and this share of the time since the start."""


class Progress:
    """Shows the progress of a run; only the main process shows anything."""

    def __init__(self, steps: int, done: int = 0, shown: bool = True) -> None:
        """Open the bar of a run of a number of steps, some of which are done."""
        self._begun_at, self._shown = done, shown
        self._started = self._last_line = time.monotonic()
        self.validation = ""
        """The figures of the last validation, which are shown from then on."""
        disable = None if shown else True  # None disables it without a terminal
        self.bar = tqdm(total=steps, initial=done, unit="step", dynamic_ncols=True, disable=disable, file=sys.stderr)
        """Counts the steps."""
        self.expect_end(steps)

    def expect_end(self, step: int) -> None:
        """Take a step for the last one: the run may have no time for more."""
        self._steps = self.bar.total = step

    def show(self, step: int, text: str) -> None:
        """Show the latest figures, and those of the last validation: next to the bar, or in a line if one is due."""
        figures = "; ".join(filter(None, (text, self.validation)))
        now = time.monotonic()
        if not self.bar.disable:
            self.bar.set_postfix_str(figures, refresh=False)
        elif now - self._last_line >= max(LINE_SECONDS, LINE_SHARE * (now - self._started)):
            self._last_line = now
            seconds = (now - self._started) / max(1, step - self._begun_at) * (self._steps - step)
            self.write(f"step {step:,} of {self._steps:,}, {tqdm.format_interval(seconds)} left: {figures}")

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        if self._shown:
            self.bar.write(line, file=sys.stderr)
            sys.stderr.flush()
