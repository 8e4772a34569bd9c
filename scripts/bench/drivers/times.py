"""Measure how long the phases of a program take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Times(dict[str, float]):
    """The seconds that each phase has taken."""

    def __missing__(self, phase: str) -> float:
        return 0.0

    @contextmanager
    def of(self, phase: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        began = time.perf_counter()
        yield
        self[phase] += time.perf_counter() - began

    def wrap(self, owner: Any, name: str, phase: str) -> None:
        """Replace a function or method by one that adds its time to a phase."""
        original: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            with self.of(phase):
                return original(*arguments, **named)

        setattr(owner, name, timed)
