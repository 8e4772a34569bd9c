"""Which actor gets which item, whatever is lost, with a stand-in for Ray that loses actors as it is told."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config.tree import RuntimeConfig
from nmt.data.ray.devices import DeviceWorker, RayDevices
from nmt.data.ray.task import Task, versions
from nmt.errors import UserError


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class FakeRay:
    """Runs what an actor is asked for when its result is fetched; ends actors at some items."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, places: float = 100, **resources: float) -> None:
        self.resources, self.places = resources, places
        self.options: dict[str, object] = {}
        self.started = self.killed = 0
        self.deadly: list[object] = []
        """Items, or "prepare", that end the actor, once for each time that they are listed."""
        self.order: Callable[[Sequence[Any]], Any] = lambda waiting: waiting[0]

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def put(self, value: object) -> object:
        return value

    def remote(self, **options: object) -> Callable[[type], Any]:
        self.options = options
        return lambda made: SimpleNamespace(remote=lambda: self.start(made()))

    def start(self, worker: DeviceWorker) -> SimpleNamespace:
        self.started += 1
        number = self.started

        def method(name: str) -> SimpleNamespace:
            return SimpleNamespace(remote=lambda argument: Future(number, name, getattr(worker, name), argument))

        return SimpleNamespace(prepare=method("prepare"), apply=method("apply"))

    def wait(self, waiting: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        able = [each for each in waiting if each.number <= self.places + self.killed]
        assert able, "it would wait for ever"
        return [self.order(able)], []

    def get(self, future: Any) -> Any:
        what = "prepare" if future.name == "prepare" else future.argument[0]
        if what in self.deadly:
            self.deadly.remove(what)
            raise RayError("the actor died\nand more")
        try:
            return future.function(future.argument)
        except Exception as error:
            raise RayTaskError(error) from error

    def kill(self, actor: object) -> None:
        self.killed += 1


class Future:
    """What an actor was asked for."""

    def __init__(self, number: int, name: str, function: Callable[[Any], Any], argument: Any) -> None:
        self.number, self.name, self.function, self.argument = number, name, function, argument


def doubling() -> Callable[[int], int]:
    def double(item: int) -> int:
        if item == 13:
            raise UserError("thirteen")
        return 2 * item

    return double


def workers_on(ray: FakeRay, **runtime: Any) -> RayDevices:
    return RayDevices(ray, Task(doubling, (), versions("torch"), "doubles"), RuntimeConfig(**runtime))


ALL = [2 * item for item in range(9)]


@pytest.mark.parametrize(
    ("resources", "runtime", "count", "options"),
    [
        ({"CPU": 16, "GPU": 4}, {}, 4, {"num_gpus": 1, "num_cpus": 1}),
        ({"CPU": 16, "GPU": 4}, {"device": "cpu", "threads": 5}, 3, {"num_cpus": 5}),
        ({"CPU": 16}, {}, 16, {"num_cpus": 1}),
        ({}, {"threads": 2}, 1, {"num_cpus": 2}),
    ],
)
def test_there_is_a_worker_per_gpu_or_else_per_few_cores(
    resources: dict[str, float], runtime: dict[str, Any], count: int, options: dict[str, int]
) -> None:
    ray = FakeRay(**resources)
    assert workers_on(ray, **runtime).count == count
    assert {name: ray.options[name] for name in options} == options
    assert ray.options["max_restarts"] == ray.options["max_task_retries"] == 0


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("deadly", [[0], [8], [4, 4, 4], ["prepare", "prepare"], ["prepare", 0, 1, 2, 3, 8]])
def test_each_item_is_done_once_whatever_is_lost(deadly: list[object], last_first: bool) -> None:
    ray = FakeRay(CPU=3)
    ray.deadly = list(deadly)
    ray.order = lambda waiting: waiting[-1 if last_first else 0]
    assert sorted(workers_on(ray).map(range(9))) == ALL
    assert ray.deadly == []
    assert ray.killed == len(deadly), "what is left of lost actors must free its place"


def test_the_work_of_a_lost_machine_goes_on_elsewhere() -> None:
    ray = FakeRay(CPU=3, places=1)  # the others never begin
    ray.deadly = [5]
    assert sorted(workers_on(ray).map(range(9))) == ALL


def test_errors_of_the_function_end_the_work() -> None:
    with pytest.raises(UserError, match=r"^thirteen$"):
        list(workers_on(FakeRay(CPU=2)).map(range(20)))
    with pytest.raises(UserError, match=r"a Ray worker that doubles failed .*unsupported operand"):
        list(workers_on(FakeRay(CPU=2)).map([{}]))
