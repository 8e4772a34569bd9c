"""The workers of data preparation: processes of this machine, or of a Ray cluster if `data.engine=ray`."""

import os
import re
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any, NamedTuple

from nmt.compute.cores import usable_cores
from nmt.compute.processes import map_in_processes
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.packages import import_optional

TIMEOUT_SECONDS = 10
"""The longest wait for an answer of the machine that RAY_ADDRESS names."""
RETRIES = 10
"""How often a chunk is given to another worker of Ray if the first one is lost: it might be what ends each of them."""
MakeFunction = Callable[..., Callable[[Any], Any]]
"""A function of a module that returns the function to apply to items; each worker calls it once."""


class Engine(NamedTuple):
    """Where the work is done. What workers compute depends on the items alone, so every engine does the same."""

    name: str = "processes"
    workers: int = 1

    @classmethod
    def of(cls, config: Config) -> "Engine":
        """Return the engine that the settings name."""
        return cls(config.data.engine, config.runtime.workers or usable_cores())


def map_chunks(engine: Engine, purpose: str, chunks: Iterable[Any], make: MakeFunction, *args: Any) -> Iterator[Any]:
    """Yield the result of `make(*args)` for each chunk, in order, from an engine's workers.

    This process does the work if there is only one process or chunk. Errors say the `purpose`.
    """
    function = make(*args)  # also refuses arguments, before workers are started
    first = list(islice(chunks := iter(chunks), 2))
    if len(first) < 2 or engine == Engine():
        yield from map(function, chain(first, chunks))
        return
    run = _map_with_ray if engine.name == "ray" else map_in_processes
    with closing(run(engine.workers, purpose, chain(first, chunks), make, *args)) as results:
        yield from results


def _map_with_ray(
    workers: int, purpose: str, chunks: Iterable[Any], make: MakeFunction, *args: Any
) -> Generator[Any, None, None]:
    """Yield the results from a cluster, in which there are at most two chunks per core."""
    ray = import_optional("ray")
    _connect(ray, workers)
    placed = ray.put((make, args))  # gives the function to the cluster once
    remote = ray.remote(max_retries=RETRIES)(_apply)
    limit = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: deque[Any] = deque()
    try:
        for chunk in chunks:
            # in a tuple, because Ray would serialise the parts of a list one by one
            waiting.append(remote.remote(placed, placed.hex(), (chunk,)))
            if len(waiting) > limit:
                yield ray.get(waiting.popleft())
        while waiting:
            yield ray.get(waiting.popleft())
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", error)
        if isinstance(cause, UserError):
            raise cause from None
        reason = next(iter(str(cause).splitlines()), "") or type(cause).__name__
        raise UserError(f"a Ray worker that {purpose} failed ({reason}): run the same command again") from None
    finally:
        for each in waiting:
            ray.cancel(each)


_made: dict[str, Callable[[Any], Any]] = {}
"""The last function that a worker of Ray has made, by its key."""


def _apply(task: tuple[MakeFunction, tuple[Any, ...]], key: str, packed: tuple[Any]) -> Any:
    """Return what the function of a task, which has a key of its own, returns for the chunk in a tuple."""
    if key not in _made:
        _made.clear()
        make, args = task
        _made[key] = make(*args)
    return _made[key](packed[0])


def _connect(ray: Any, workers: int) -> None:
    """Connect to the cluster of RAY_ADDRESS, or start one on this machine; it ends with this process."""
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports about its use otherwise
    local = {} if address else {"num_cpus": workers, "include_dashboard": False}
    try:
        # Ray would wait for minutes for a machine that does not answer
        if found := re.fullmatch(r"(?:ray://)?([^:/\[\]]+):(\d{1,5})", address):
            socket.create_connection((found[1], int(found[2])), TIMEOUT_SECONDS).close()
        ray.init(address or "local", configure_logging=False, log_to_driver=False, **local)
    except Exception as error:  # of any kind: Ray raises many for addresses and versions
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(
            f"cannot use Ray with RAY_ADDRESS={address} ({reason}): check the address, that Ray runs there, and that "
            "Ray and Python have the same versions"
        ) from error
