"""Where the work of data preparation is done: `data.engine` names one."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any, Protocol

from nmt.compute.cores import usable_cores
from nmt.compute.processes import HelperProcesses
from nmt.config.registry import load
from nmt.config.tree import Config

MakeFunction = Callable[..., Callable[[Any], Any]]
"""A function of a module that returns the function to apply to items; each worker calls it once."""


class Workers(Protocol):
    """Processes that apply one function to items, in parallel, until they are closed."""

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item; only a few items are read ahead."""

    def close(self) -> None:
        """Stop the processes."""


class Engine:
    """The processes of this machine. What workers compute depends on the items alone, so every engine does the same."""

    def __init__(self, config: Config) -> None:
        """Take the settings; nothing is started before it is needed."""
        self.config = config
        self.count = config.runtime.workers or usable_cores()

    @property
    def is_alone(self) -> bool:
        """Whether this process should do the work itself."""
        return self.count == 1

    def workers(self, purpose: str, make: MakeFunction, *args: Any) -> Workers:
        """Start workers, which return results in order; errors say the `purpose` of the workers."""
        return HelperProcesses(self.count, purpose, make, *args)

    def close(self) -> None:
        """Release what the engine has started; workers are closed by those who start them."""


def open_engine(config: Config) -> Engine:
    """Return the engine that the settings name; close it at the end."""
    engine: Engine = load("data.engine", config.data.engine)(config)
    return engine


def map_chunks(
    engine: Engine | None, purpose: str, chunks: Iterable[Any], make: MakeFunction, *args: Any
) -> Iterator[Any]:
    """Yield the result of `make(*args)` for each chunk, in order, from an engine's workers.

    This process does the work if there is no engine, if it is alone, or if there is one chunk.
    """
    function = make(*args)  # also refuses arguments, before workers are started
    first = list(islice(chunks := iter(chunks), 2))
    if engine is None or engine.is_alone or len(first) < 2:
        yield from map(function, chain(first, chunks))
        return
    with closing(engine.workers(purpose, make, *args)) as workers:
        yield from workers.map(chain(first, chunks))
