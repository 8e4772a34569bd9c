"""Where the work of data preparation is done: `data.engine` names one."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any

from nmt.compute.cores import usable_cores
from nmt.compute.processes import map_in_processes
from nmt.config.registry import load
from nmt.config.tree import Config

MakeFunction = Callable[..., Callable[[Any], Any]]
"""A function of a module that returns the function to apply to items; each worker calls it once."""


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

    def map(self, purpose: str, items: Iterable[Any], make: MakeFunction, *args: Any) -> Generator[Any]:
        """Yield the result of `make(*args)` for each item, in order, from workers; errors say their `purpose`."""
        return map_in_processes(self.count, purpose, items, make, *args)

    def close(self) -> None:
        """Release what the engine has started."""


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
    with closing(engine.map(purpose, chain(first, chunks), make, *args)) as results:
        yield from results
