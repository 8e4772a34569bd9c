"""Where the work of data preparation is done: `data.engine` names one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any, ClassVar, Protocol

from nmt.compute.cores import usable_cores
from nmt.compute.processes import HelperProcesses
from nmt.config.registry import load
from nmt.config.tree import Config


class Workers(Protocol):
    """Processes that apply one function to items, in parallel, until they are closed."""

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item, in order; only a few items are read ahead."""

    def close(self) -> None:
        """Stop the processes."""


class DeviceWorkers(Protocol):
    """Processes that apply one function to items, each on a device of its own, until they are closed."""

    count: int
    """The largest number of processes."""

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item, in any order; only a few items are read ahead."""

    def close(self) -> None:
        """Stop the processes."""


class Engine(ABC):
    """Starts workers. What they compute depends on the items alone, so every engine prepares the same data."""

    shares_quick_work: ClassVar[bool] = False
    """Whether workers also do what takes little longer than sending the text to them, to relieve this process."""
    has_devices: ClassVar[bool] = False
    """Whether it has `device_workers`, on which models translate; otherwise they do in this process."""

    def __init__(self, config: Config) -> None:
        """Take the settings; nothing is started before it is needed."""
        self.config = config

    @property
    def is_alone(self) -> bool:
        """Whether this process should do the work itself."""
        return False

    @abstractmethod
    def workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        """Start workers.

        Args:
            purpose: What they do, for errors.
            make: A function of a module that returns the function to apply; each worker calls it once.
            args: Its arguments.
        """

    def device_workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> DeviceWorkers:
        """Start workers with a GPU each if there are GPUs, else with `runtime.threads` cores each; see `workers`."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Release what the engine has started."""


class LocalProcesses(Engine):
    """The processes of this machine."""

    @property
    def count(self) -> int:
        """The number of processes."""
        return self.config.runtime.workers or usable_cores()

    @property
    def is_alone(self) -> bool:
        """See `Engine.is_alone`."""
        return self.count == 1

    def workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        """See `Engine.workers`."""
        return HelperProcesses(self.count, purpose, make, *args)

    def close(self) -> None:
        """Do nothing, because workers are closed by those who start them."""


def open_engine(config: Config) -> Engine:
    """Return the engine that the settings name; close it at the end."""
    engine: Engine = load("data.engine", config.data.engine)(config)
    return engine


def map_chunks(
    engine: Engine | None, purpose: str, chunks: Iterable[Any], make: Callable[..., Callable[[Any], Any]], *args: Any
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
