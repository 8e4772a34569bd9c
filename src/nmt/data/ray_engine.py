"""Data preparation, and translation with a model per device, on a cluster of Ray or a local one."""

import os
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from nmt import __version__
from nmt.config.tree import RuntimeConfig
from nmt.data.engine import Engine, MakeFunction, Workers
from nmt.errors import UserError
from nmt.packages import import_optional

TIMEOUT_SECONDS = 10
"""The longest wait for an answer of the machine that the address names."""
RETRIES = 10
"""How often work is repeated whose worker or machine is lost, so that work that always ends its worker has an end."""
PATIENCE_SECONDS = 60
"""How long no worker may have begun before the user is told."""
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
        found = versions(*self.versions.keys() & {"torch"})
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


def versions(*further: str) -> dict[str, str]:
    """Return the versions of everything on which the prepared text depends, and of further packages."""
    packages = {name: version(name).partition("+")[0] for name in ("sentencepiece", "numpy", *further)}
    return {"nmt": __version__, "Python": f"{sys.version_info.major}.{sys.version_info.minor}", **packages}


class RayEngine(Engine):
    """A cluster of Ray, to which this process connects when it first needs workers."""

    has_devices: ClassVar[bool] = True
    is_alone = False
    _ray: Any = None

    def workers(self, purpose: str, make: MakeFunction, *args: Any) -> Workers:
        """See `Engine`."""
        return RayWorkers(self._connected(), Task(make, args, versions(), purpose))

    def device_workers(self, purpose: str, make: MakeFunction, *args: Any) -> Workers:
        """See `Engine`."""
        return RayDevices(self._connected(), Task(make, args, versions("torch"), purpose), self.config.runtime)

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


class RayWorkers:
    """Tasks of Ray, which repeats those of workers and machines that are lost."""

    def __init__(self, ray: Any, task: Task) -> None:
        """Give the function to the cluster once."""
        self._ray, self._task, self._placed = ray, task, ray.put(task)
        self._remote = ray.remote(max_retries=RETRIES, retry_exceptions=False)(run_task)
        self._waiting: deque[Any] = deque()

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item, in order; at most two items per core are in the cluster."""
        limit = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        for item in items:
            # in a tuple, because Ray would serialise the parts of a list one by one
            self._waiting.append(self._remote.remote(self._placed, str(self._placed.hex()), (item,)))
            if len(self._waiting) > limit:
                yield self._result()
        while self._waiting:
            yield self._result()

    def _result(self) -> Any:
        try:
            return self._ray.get(self._waiting.popleft())
        except self._ray.exceptions.RayError as error:
            raise self._task.failure(error) from None

    def close(self) -> None:
        """Give up what has not been computed."""
        for each in self._waiting:
            self._ray.cancel(each)
        self._waiting.clear()


class DeviceWorker:
    """What an actor of Ray does: it keeps the function, and its model on a device."""

    _function: Callable[[Any], Any]

    def prepare(self, task: Task) -> None:
        """Make the function."""
        self._function = task.function()

    def apply(self, packed: tuple[Any]) -> Any:
        """Return what the function returns for the item in a tuple."""
        return self._function(packed[0])


@dataclass
class _Job:
    """An item to work on; None prepares an actor."""

    item: Any
    losses: int = 0


class RayDevices:
    """Actors of Ray with a device each; work that an actor loses goes to another one."""

    def __init__(self, ray: Any, task: Task, runtime: RuntimeConfig) -> None:
        """Give the function to the cluster; nothing is started yet."""
        self._ray, self._task, self._placed = ray, task, ray.put(task)
        resources = ray.cluster_resources()
        gpus, threads = int(resources.get("GPU", 0)) if runtime.device != "cpu" else 0, runtime.threads or 1
        self.count: int = gpus or max(1, int(resources.get("CPU", 1)) // threads)
        needed = {"num_gpus": 1, "num_cpus": 1} if gpus else {"num_cpus": threads}
        # this process repeats what is lost: Ray would wait for the actor's own place
        self._actor = ray.remote(max_restarts=0, max_task_retries=0, **needed)(DeviceWorker)
        self._actors: list[Any] = []
        self._idle: list[Any] = []
        self._running: dict[Any, tuple[Any, _Job]] = {}
        self._jobs: deque[_Job] = deque()
        self._starts = _Job(None)

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item, in any order; only one item is read ahead."""
        left = iter(items)
        while self._assign(left):
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE_SECONDS)
            if not done and all(job is self._starts for _, job in self._running.values()):
                print("waiting for a place for a worker in the Ray cluster", file=sys.stderr, flush=True)
            for each in done:
                yield from self._finish(each)

    def _assign(self, left: Iterator[Any]) -> bool:
        """Give items to actors, and start as many as there may be; return whether there is work to wait for."""
        while True:
            if not self._jobs:
                self._jobs.extend(map(_Job, islice(left, 1)))
            if not self._jobs:
                return any(job is not self._starts for _, job in self._running.values())
            while len(self._actors) < self.count:
                self._actors.append(actor := self._actor.remote())
                self._running[actor.prepare.remote(self._placed)] = actor, self._starts
            if not self._idle:
                return True
            actor, job = self._idle.pop(), self._jobs.popleft()
            self._running[actor.apply.remote((job.item,))] = actor, job

    def _finish(self, future: Any) -> Iterator[Any]:
        """Yield the result of a future that is done, if it is that of an item and its actor is not lost."""
        actor, job = self._running.pop(future)
        try:
            result = self._ray.get(future)
        except self._ray.exceptions.RayTaskError as error:
            raise self._task.failure(error) from None
        except self._ray.exceptions.RayError as error:
            self._actors.remove(actor)
            self._kill(actor)
            job.losses += 1
            if job.losses > RETRIES:
                raise self._task.failure(error) from error
            if job is not self._starts:
                self._jobs.appendleft(job)
            return
        self._idle.append(actor)
        if job is not self._starts:
            yield result

    def _kill(self, actor: Any) -> None:
        with suppress(self._ray.exceptions.RayError, ValueError):  # it has ended
            self._ray.kill(actor)

    def close(self) -> None:
        """Stop the actors."""
        for each in self._actors:
            self._kill(each)
        for kept in (self._actors, self._idle, self._running, self._jobs):
            kept.clear()
