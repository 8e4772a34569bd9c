"""Data preparation on a cluster of Ray or a local one."""

import os
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from importlib.metadata import version
from typing import Any, NamedTuple

from nmt import __version__
from nmt.data.engine import Engine, MakeFunction
from nmt.errors import UserError
from nmt.packages import import_optional

TIMEOUT_SECONDS = 10
"""The longest wait for an answer of the machine that the address names."""
RETRIES = 10
"""How often work is repeated whose worker or machine is lost, so that work that always ends its worker has an end."""
KEPT_FUNCTIONS = 4
"""Functions that a worker keeps, because the filters and the encoder of several stages may alternate."""


class Task(NamedTuple):
    """What makes the function of workers, and the versions that it belongs to."""

    make: MakeFunction
    args: tuple[Any, ...]
    versions: dict[str, str]
    purpose: str

    def function(self) -> Callable[[Any], Any]:
        """Make the function; refuse a machine with other versions than that which sends the text."""
        found = versions()
        for name, wanted in self.versions.items():
            if found[name] != wanted:
                raise UserError(
                    f"the Ray worker on {socket.gethostname()} has {name} {found[name]}, but {wanted} is here: "
                    "install the same versions on all machines"
                )
        return self.make(*self.args)

    def failure(self, error: BaseException) -> UserError:
        """Return the error of one line about a worker that has failed."""
        cause = getattr(error, "cause", error)  # of an error that the function has raised
        if isinstance(cause, UserError):
            return cause
        reason = next(iter(str(cause).splitlines()), "") or type(cause).__name__
        return UserError(f"a Ray worker that {self.purpose} failed ({reason}): run the same command again")


def versions() -> dict[str, str]:
    """Return the versions of everything on which the prepared text depends."""
    packages = {name: version(name).partition("+")[0] for name in ("sentencepiece", "numpy")}
    return {"nmt": __version__, "Python": f"{sys.version_info.major}.{sys.version_info.minor}", **packages}


class RayEngine(Engine):
    """A cluster of Ray, to which this process connects when it first needs workers."""

    is_alone = False
    _ray: Any = None

    def map(self, purpose: str, items: Iterable[Any], make: MakeFunction, *args: Any) -> Generator[Any]:
        """See `Engine`. Ray repeats the work of workers and machines that are lost.

        At most two items per core are in the cluster.
        """
        ray, task = self._connected(), Task(make, args, versions(), purpose)
        placed = ray.put(task)  # gives the function to the cluster once
        remote = ray.remote(max_retries=RETRIES, retry_exceptions=False)(run_task)
        limit = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting: deque[Any] = deque()
        try:
            for item in items:
                # in a tuple, because Ray would serialise the parts of a list one by one
                waiting.append(remote.remote(placed, str(placed.hex()), (item,)))
                if len(waiting) > limit:
                    yield ray.get(waiting.popleft())
            while waiting:
                yield ray.get(waiting.popleft())
        except ray.exceptions.RayError as error:
            raise task.failure(error) from None
        finally:
            for each in waiting:
                ray.cancel(each)

    def close(self) -> None:
        """Disconnect; a cluster on this machine ends."""
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None

    def _connected(self) -> Any:
        """Return the package ray, connected to the cluster."""
        if self._ray is None:
            ray = import_optional("ray")
            _connect(ray, os.environ.get("RAY_ADDRESS", ""), self.count)
            self._ray = ray
        return self._ray


def _connect(ray: Any, address: str, workers: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports about its use otherwise
    local = {} if address else {"num_cpus": workers, "include_dashboard": False}
    try:
        # Ray would wait for minutes for a machine that does not answer
        if found := re.fullmatch(r"(?:ray://)?([^:/\[\]]+):(\d{1,5})", address):
            socket.create_connection((found[1], int(found[2])), TIMEOUT_SECONDS).close()
        ray.init(address or "local", configure_logging=False, log_to_driver=False, **local)
    except Exception as error:  # of any kind: Ray raises many for addresses and versions
        place = f"RAY_ADDRESS={address}" if address else "a Ray cluster on this machine"
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = "see Ray's message"
        if address:
            remedy = "check the address, that Ray runs there, and that Ray and Python have the same versions"
        raise UserError(f"cannot connect to {place} ({reason}): {remedy}") from error


_made: dict[str, Callable[[Any], Any]] = {}


def run_task(task: Task, key: str, packed: tuple[Any]) -> Any:
    """Return what the function of a task, which has a key of its own, returns for the item in a tuple."""
    if key not in _made:
        if len(_made) == KEPT_FUNCTIONS:
            _made.pop(next(iter(_made)))
        _made[key] = task.function()
    return _made[key](packed[0])
