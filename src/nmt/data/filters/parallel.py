"""Divide the work of a slow filter between processes."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from nmt.config.data import DataConfig
from nmt.data.engine import Engine, Workers
from nmt.data.sources.source import Pair

PART_PAIRS = 2_000
"""Pairs that a process judges together."""

Keeps = Callable[[Sequence[Pair]], Sequence[bool]]
"""Returns for each pair of a chunk whether it is kept."""


class ParallelFilter:
    """Applies a function to the pairs of large chunks in several processes, which start when they are first needed."""

    def __init__(self, make: Callable[..., Any], config: DataConfig, engine: Engine, *known: Any) -> None:
        """Divide the work of a function that returns something for each pair independently of the others.

        Args:
            make: Returns the function, given the settings and what it must know besides.
            config: The settings.
            engine: Starts the processes.
            known: What the function must know besides.
        """
        self._judge = make(config, *known)
        self._make, self._args, self._engine = make, (config, *known), engine
        self._workers: Workers | None = None

    def keeps(self, chunk: Sequence[Pair]) -> Sequence[Any]:
        """Return what the function returns for each pair."""
        if self._engine.is_alone or len(chunk) <= 2 * PART_PAIRS:
            found: Sequence[Any] = self._judge(chunk)
            return found
        if self._workers is None:
            self._workers = self._engine.workers("filters text", self._make, *self._args)
        parts = (list(chunk[start : start + PART_PAIRS]) for start in range(0, len(chunk), PART_PAIRS))
        return list(chain.from_iterable(self._workers.map(parts)))

    def close(self) -> None:
        """Stop the processes."""
        if self._workers is not None:
            self._workers.close()
