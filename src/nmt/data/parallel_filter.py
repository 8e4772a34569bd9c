"""Divide the work of a slow filter between processes."""

from collections.abc import Callable, Sequence
from itertools import chain

from nmt.compute.processes import HelperProcesses
from nmt.config.schema import DataConfig
from nmt.data.sources.source import Pair

PART_PAIRS = 2_000
"""Pairs that a process judges together."""

Keeps = Callable[[Sequence[Pair]], Sequence[bool]]
"""Returns for each pair of a chunk whether it is kept."""
MakeFilter = Callable[[DataConfig], Keeps]
"""Returns a filter's function, given the settings; processes can be given one that is defined in a module."""


class ParallelFilter:
    """Judges the pairs of large chunks in several processes, which start when they are first needed."""

    def __init__(self, make: MakeFilter, config: DataConfig, workers: int) -> None:
        """Divide the work of a filter that judges each pair independently of the others."""
        self._keeps = make(config)
        self._make, self._config, self._workers = make, config, workers
        self._helpers: HelperProcesses | None = None

    def keeps(self, chunk: Sequence[Pair]) -> Sequence[bool]:
        """Return for each pair whether it is kept."""
        if self._workers == 1 or len(chunk) <= 2 * PART_PAIRS:
            return self._keeps(chunk)
        if self._helpers is None:
            self._helpers = HelperProcesses(self._workers, "filters text", _prepare, self._make, self._config)
        parts = (list(chunk[start : start + PART_PAIRS]) for start in range(0, len(chunk), PART_PAIRS))
        return list(chain.from_iterable(self._helpers.map(_judge, parts)))

    def close(self) -> None:
        """Stop the processes."""
        if self._helpers is not None:
            self._helpers.close()


_keeps: Keeps


def _prepare(make: MakeFilter, config: DataConfig) -> None:
    global _keeps  # noqa: PLW0603 (a process pool offers no other place for what each worker makes once)
    _keeps = make(config)


def _judge(part: list[Pair]) -> list[bool]:
    return list(_keeps(part))
