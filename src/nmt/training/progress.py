"""How far training is: a bar on a terminal, plain lines in a log file."""

import sys
from types import TracebackType
from typing import Self

from tqdm import tqdm


class TrainingProgress:
    """The progress of a run over its steps; silent in the processes beside the first."""

    def __init__(self, steps: int, done: int = 0, shown: bool = True) -> None:
        """Start.

        Args:
            steps: Updates to make.
            done: Updates made by an earlier part of the run.
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

    def show(self, text: str) -> None:
        """Tell how it goes: beside the bar, or as a line with the step where there is no bar."""
        if not self._bar.disable:
            self._bar.set_postfix_str(text, refresh=False)
        else:
            self.say(f"step {self._done}/{self._steps}  {text}")

    def say(self, line: str) -> None:
        """Write a line that stays."""
        if self._shown:
            self._bar.write(line, file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
