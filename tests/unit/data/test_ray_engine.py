"""Ray does the same as this machine's processes, also if workers, actors and drivers are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.tree import Config, RuntimeConfig
from nmt.data import encode
from nmt.data.filters import pipeline as filters
from nmt.data.prepare import prepare
from nmt.data.ray_engine import DeviceWorker, RayDevices, RayEngine, Task, run_task, versions
from nmt.errors import UserError
from tests.integration.toy import environment, pairs

needs_ray = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import ray"], capture_output=True, check=False).returncode != 0,
    reason="needs the extra ray",
)
"""In another process, because Ray is slow to import and its threads outlive the import."""
PAIRS = 900


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    """Return settings of a corpus with repeated pairs, empty sides and long sentences."""
    found = pairs(PAIRS, 3)
    found += [found[5], ("", "x"), ("x " * 300, "x"), found[7]]
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"toy.{language}").write_text("".join(f"{pair[side]}\n" for pair in found))
    return [
        *("data.source=files", "data.valid=[]", "data.test=[]", "data.hold_out=0.05", "data.deduplicate=true"),
        *("data.max_words=50", "data.max_ratio=3", "tokenizer.vocab_size=80", "data.max_pieces=24"),
        f"data.train=[{tmp_path / 'toy.en'},{tmp_path / 'toy.de'}]",
        f"paths.data={tmp_path}",
    ]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters.read_chunks, "__defaults__", (90,))
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 70)


def content(config: Config) -> dict[str, bytes]:
    """Return the files of a corpus; in the manifest, seconds and the name of the corpus do not count."""
    names = [file for file in config.data_folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    return {file.name: file.read_bytes() for file in names if file.name != "manifest.json"}


def prepared(settings: list[str], *more: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    config = compose([*settings, *more])
    manifest = prepare(config, lambda _: None)
    return content(config), {name: (task.outputs, task.result) for name, task in manifest.tasks.items()}


def test_without_the_package_an_error_says_how_to_install_it(
    settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    with pytest.raises(UserError, match=r"needs the package ray: .*pip install 'ray>="):
        prepare(compose([*settings, "data.engine=ray"]), lambda _: None)


def test_a_worker_makes_each_function_once() -> None:
    made: list[int] = []

    def make(number: int) -> Callable[[int], int]:
        made.append(number)
        return lambda item: number * item

    tasks = {f"key {number}": Task(make, (number,), versions(), "test") for number in range(3)}
    found = [run_task(task, key, (item,)) for item in (1, 10) for key, task in tasks.items()]
    assert found == [0, 1, 2, 0, 10, 20]
    assert made == [0, 1, 2]


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(UserError, match=r"the Ray worker on \S+ has nmt .*, but 0\.0 is here: install the same"):
        Task(failing, (), {**versions(), "nmt": "0.0"}, "test").function()


@needs_ray
@pytest.mark.slow
def test_the_prepared_folder_is_the_same_to_the_byte(settings: list[str]) -> None:
    alone = prepared(settings, "data.corpus=alone", "runtime.workers=1")
    assert prepared(settings, "data.corpus=ray", "data.engine=ray", "runtime.workers=2") == alone
    assert alone[1]["collect train"][1]["dropped"]["duplicates"] > 2


@needs_ray
@pytest.mark.slow
def test_results_are_in_order_however_workers_finish_and_errors_come_back() -> None:
    with closing(RayEngine(compose(["data.engine=ray", "runtime.workers=2"]))) as engine:
        workers = engine.workers("sleeps", sleeping, 0.05)
        assert list(workers.map(range(12))) == list(range(12))
        with pytest.raises(UserError, match=r"^seven$"):
            list(engine.workers("fails", failing).map(range(12)))
        with pytest.raises(UserError, match=r"a Ray worker that fails failed \(division by zero\): run the same"):
            list(engine.workers("fails", dividing).map(range(2)))


@needs_ray
@pytest.mark.slow
def test_the_work_of_a_killed_worker_or_actor_is_done_by_another_one(tmp_path: Path) -> None:
    with closing(RayEngine(compose(["data.engine=ray", "runtime.workers=2"]))) as engine:
        workers = engine.workers("dies", dying, tmp_path / "died")
        assert list(workers.map(range(12))) == list(range(12))
        assert (tmp_path / "died").exists()
        with closing(engine.device_workers("dies", dying, tmp_path / "actor died")) as actors:
            assert sorted(actors.map(range(30))) == list(range(30))
        assert (tmp_path / "actor died").exists()


@needs_ray
@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with (
        closing(RayEngine(compose(["data.engine=ray"]))) as engine,
        pytest.raises(UserError, match=r"cannot connect to RAY_ADDRESS=127.0.0.1:1 ") as error,
    ):
        engine.workers("sleeps", sleeping, 0)
    assert "\n" not in str(error.value)


@needs_ray
@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_the_same_command_goes_on(settings: list[str], tmp_path: Path) -> None:
    alone = prepared(settings, "data.corpus=alone", "runtime.workers=1")
    words = [*settings, "data.corpus=ray", "data.engine=ray", "runtime.workers=2"]
    temporary = {"RAY_TMPDIR": f"/tmp/nmt-ray-{os.getpid()}"}  # a short path: Ray's sockets are in it
    driver = subprocess.Popen([sys.executable, "-m", "nmt", "data", *words], env={**environment(), **temporary})
    until((tmp_path / "ray" / "manifest.json").exists)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    until(lambda: not any(temporary["RAY_TMPDIR"] in line for line in command_lines()))
    assert prepared(words) == alone


def sleeping(seconds: float) -> Callable[[int], int]:
    def sleep(item: int) -> int:
        time.sleep(seconds * (item % 3))
        return item

    return sleep


def failing() -> Callable[[int], int]:
    def fail(item: int) -> int:
        if item == 7:
            raise UserError("seven")
        return item

    return fail


def dividing() -> Callable[[int], float]:
    return lambda item: item / 0


def dying(mark: Path) -> Callable[[int], int]:
    def die_once(item: int) -> int:
        if item == 5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die_once


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def command_lines() -> Iterator[str]:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield each.read_bytes().decode(errors="replace")
        except OSError:  # ended meanwhile
            continue


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


def test_work_that_always_ends_its_actor_is_an_error() -> None:
    for deadly in ("prepare", 5):
        ray = FakeRay(CPU=2)
        ray.deadly = [deadly] * 100
        with pytest.raises(UserError, match=r"a Ray worker that doubles failed \(the actor died\): run the same"):
            list(workers_on(ray).map(range(9)))
