"""Workers that are tasks of Ray, which repeats the tasks of workers and machines that are lost."""

import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from nmt.compute.cores import usable_cores
from nmt.data.engine import DeviceWorkers, Engine, Workers
from nmt.data.ray.devices import RETRIES, RayDevices, failure
from nmt.data.ray.task import Task, run_task, versions
from nmt.errors import UserError
from nmt.packages import import_optional

TIMEOUT_SECONDS = 10
"""The longest wait for an answer of the machine that the address names."""


class RayEngine(Engine):
    """A cluster of Ray, to which this process connects when it first needs workers."""

    shares_quick_work: ClassVar[bool] = True
    has_devices: ClassVar[bool] = True
    _ray: Any = None

    def workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        """See `Engine.workers`."""
        return RayWorkers(self._connected(), purpose, make, args)

    def device_workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> DeviceWorkers:
        """See `Engine.device_workers`."""
        return RayDevices(self._connected(), Task(make, args, versions("torch"), purpose), self.config.runtime)

    def _connected(self) -> Any:
        """Return the package ray, connected to the cluster."""
        if self._ray is None:
            ray = import_optional("ray")
            _connect(ray, os.environ.get("RAY_ADDRESS", ""), self.config.runtime.workers or usable_cores())
            self._ray = ray
        return self._ray

    def close(self) -> None:
        """Disconnect; a cluster on this machine ends."""
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None


def _connect(ray: Any, address: str, workers: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports about its use otherwise
    _check_reachable(address)
    local = {} if address else {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address or "local", configure_logging=False, log_to_driver=False, **local)
    except Exception as error:  # of any kind: Ray raises many for addresses and versions
        place = f"RAY_ADDRESS={address}" if address else "a Ray cluster on this machine"
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = "check the address, and that Ray and Python have the same versions" if address else "see Ray's message"
        raise UserError(f"cannot connect to {place} ({reason}): {remedy}") from error


def _check_reachable(address: str) -> None:
    """Refuse a machine that does not answer, for which Ray would wait for minutes."""
    found = re.fullmatch(r"(?:ray://)?([^:/\[\]]+):(\d{1,5})", address)
    try:
        if found:
            socket.create_connection((found[1], int(found[2])), TIMEOUT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"cannot connect to RAY_ADDRESS={address} ({error}): check the address, and that Ray runs there"
        ) from error


class RayWorkers:
    """Tasks of Ray that apply one function to items; see `nmt.data.engine.Workers`."""

    def __init__(
        self, ray: Any, purpose: str, make: Callable[..., Callable[[Any], Any]], args: tuple[Any, ...]
    ) -> None:
        """Give the function to the cluster once."""
        self._ray, self._purpose = ray, purpose
        self._remote = ray.remote(max_retries=RETRIES, retry_exceptions=False)(run_task)
        self._task = ray.put(Task(make, args, versions(), purpose))
        self._waiting: deque[Any] = deque()

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's result for each item, in order; at most two items per core are in the cluster."""
        limit = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        for item in items:
            # in a tuple, because Ray would serialise the parts of a list one by one
            self._waiting.append(self._remote.remote(self._task, self._key, (item,)))
            if len(self._waiting) > limit:
                yield self._result()
        while self._waiting:
            yield self._result()

    @property
    def _key(self) -> str:
        return str(self._task.hex())

    def _result(self) -> Any:
        try:
            return self._ray.get(self._waiting.popleft())
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, UserError) else failure(self._purpose, cause) from None
        except self._ray.exceptions.RayError as error:
            raise failure(self._purpose, error) from error

    def close(self) -> None:
        """Give up what has not been computed."""
        for each in self._waiting:
            self._ray.cancel(each)
        self._waiting.clear()
