"""Show the progress of training: a bar on a terminal, plain lines in a log file."""

import sys
from types import TracebackType
from typing import Self

from tqdm import tqdm

from nmt.training.hook import Report


class TrainingProgress:
    """Shows the progress of a run; only the main process shows anything."""

    def __init__(self, steps: int, done: int = 0, shown: bool = True) -> None:
        """Open the bar.

        Args:
            steps: The number of steps of the run.
            done: Steps that are done already.
            shown: Whether to show anything.
        """
        self._steps, self._done, self._shown = steps, done, shown
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
        """Show the latest figures: next to the bar, or as a line with the step if there is no bar."""
        if not self._bar.disable:
            self._bar.set_postfix_str(text, refresh=False)
        else:
            self.write(f"step {self._done}/{self._steps}  {text}")

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        if self._shown:
            self._bar.write(line, file=sys.stderr)
            sys.stderr.flush()

    def tell(self, report: Report) -> None:
        """Write the lines of a hook."""
        for line in (*(f"warning: {each}" for each in report.warnings), *report.lines):
            self.write(line)

    def close(self) -> None:
        """Stop updating the bar, and leave it on the screen."""
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
