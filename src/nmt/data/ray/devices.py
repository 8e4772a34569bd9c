"""Actors of Ray, each of which has a device and keeps a model on it; work that an actor loses goes to another one."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nmt.config.tree import RuntimeConfig
from nmt.data.ray.task import Task, check_versions, versions
from nmt.errors import UserError

RETRIES = 10
"""How often work is repeated whose worker or machine is lost, so that work that always ends its worker has an end."""
PATIENCE_SECONDS = 60
"""How long no worker may have begun before the user is told."""


class DeviceWorker:
    """What an actor of Ray does."""

    _function: Callable[[Any], Any]

    def prepare(self, task: Task) -> None:
        """Make the function."""
        check_versions(task.versions, versions("torch"))
        self._function = task.make(*task.args)

    def apply(self, packed: tuple[Any]) -> Any:
        """Return what the function returns for the item in a tuple."""
        (item,) = packed
        return self._function(item)


@dataclass
class _Job:
    """An item to work on; None prepares an actor."""

    item: Any
    losses: int = 0


class RayDevices:
    """See `nmt.data.engine.DeviceWorkers`. Actors are started when there are items for them."""

    def __init__(self, ray: Any, task: Task, runtime: RuntimeConfig) -> None:
        """Give the function to the cluster; nothing is started yet."""
        self._ray, self._purpose, self._task = ray, task.purpose, ray.put(task)
        resources = ray.cluster_resources()
        gpus, threads = int(resources.get("GPU", 0)) if runtime.device != "cpu" else 0, runtime.threads or 1
        self.count: int = gpus or max(1, int(resources.get("CPU", 1)) // threads)
        needed = {"num_gpus": 1, "num_cpus": 1} if gpus else {"num_cpus": threads}
        # the driver repeats what is lost: Ray would wait for the actor's own place
        self._actor = ray.remote(max_restarts=0, max_task_retries=0, **needed)(DeviceWorker)
        self._actors: list[Any] = []
        self._idle: list[Any] = []
        self._running: dict[Any, tuple[Any, _Job]] = {}
        self._jobs: deque[_Job] = deque()
        self._lost_while_starting = 0

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """See `DeviceWorkers.map`."""
        left = iter(items)
        while self._assign(left):
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE_SECONDS)
            if not done and all(job.item is None for _, job in self._running.values()):
                print("waiting for a place for a worker in the Ray cluster", file=sys.stderr, flush=True)
            for each in done:
                yield from self._finish(each)

    def _assign(self, left: Iterator[Any]) -> bool:
        """Give items to actors, and start as many as there are items for; return whether there is work to wait for."""
        while self._idle and self._has_jobs(1, left):
            self._submit(self._idle.pop(), self._jobs.popleft())
        starting = sum(job.item is None for _, job in self._running.values())
        while len(self._actors) < self.count and self._has_jobs(starting + 1, left):
            self._actors.append(actor := self._actor.remote())
            self._running[actor.prepare.remote(self._task)] = actor, _Job(None)
            starting += 1
        return bool(self._jobs) or len(self._running) > starting

    def _has_jobs(self, count: int, left: Iterator[Any]) -> bool:
        """Read this number of items ahead, if there are as many."""
        for item in left if len(self._jobs) < count else ():
            self._jobs.append(_Job(item))
            if len(self._jobs) >= count:
                break
        return len(self._jobs) >= count

    def _submit(self, actor: Any, job: _Job) -> None:
        self._running[actor.apply.remote((job.item,))] = actor, job

    def _finish(self, future: Any) -> Iterator[Any]:
        """Yield the result of a future that is done, if it is that of an item and its actor is not lost."""
        actor, job = self._running.pop(future)
        try:
            result = self._ray.get(future)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, UserError) else failure(self._purpose, cause) from None
        except self._ray.exceptions.RayError as error:
            self._lose(actor, job, error)
            return
        self._idle.append(actor)
        if job.item is not None:
            yield result

    def _lose(self, actor: Any, job: _Job, error: Exception) -> None:
        """Give up an actor, and keep its work for another one, unless that has ended too many actors."""
        self._actors.remove(actor)
        self._kill(actor)
        if job.item is None:
            self._lost_while_starting += 1
        else:
            job.losses += 1
            self._jobs.appendleft(job)
        if max(job.losses, self._lost_while_starting) > RETRIES:
            raise failure(self._purpose, error) from error

    def _kill(self, actor: Any) -> None:
        with suppress(self._ray.exceptions.RayError, ValueError):  # it has ended
            self._ray.kill(actor)

    def close(self) -> None:
        """Stop the actors."""
        for each in self._actors:
            self._kill(each)
        for kept in (self._actors, self._idle, self._running, self._jobs):
            kept.clear()


def failure(purpose: str, error: BaseException) -> UserError:
    """Return the error of one line about a worker that has failed."""
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    return UserError(f"a Ray worker that {purpose} failed ({reason}): run the same command again")
