"""What a process of a model says if the model cannot be loaded."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.config.tree import Config, RuntimeConfig
from nmt.errors import UserError
from nmt.serving import process, worker
from nmt.serving.metrics import Metrics
from nmt.serving.requests import Failure, ModelFacts, ModelSource


class Panic(BaseException):
    """As libraries in Rust raise it; no Exception."""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UserError("there is no folder"), "there is no folder"),
        (ImportError("cannot\nallocate"), "model tiny cannot be loaded: ImportError: cannot allocate"),
        (Panic("out of memory"), "model tiny cannot be loaded: Panic: out of memory"),
    ],
)
def test_whatever_fails_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, message: str
) -> None:
    def fail(_: ModelSource) -> None:
        raise error

    monkeypatch.setattr(worker, "load_source", fail)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the process ignores signals
    ours, theirs = Pipe()
    process._run(theirs, ModelSource("tiny", Config(), ""))
    assert ours.recv() == Failure(message)


def test_a_link_is_followed_once_so_that_all_processes_have_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "model-1").mkdir()
    (tmp_path / "model").symlink_to("model-1")
    processes = process.ModelProcesses(ModelSource("tiny", Config(), str(tmp_path / "model")), Metrics())
    (tmp_path / "model").unlink()
    assert processes.source.folder == str((tmp_path / "model-1").resolve())


def test_a_model_may_be_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    processes = process.ModelProcesses(ModelSource("tiny", Config(), "~/model"), Metrics())
    assert processes.source.folder == str((tmp_path / "model").resolve())


class Unstartable:
    """Stands in for the processes of multiprocessing where there is no memory for another one."""

    Pipe = staticmethod(Pipe)

    class Process:
        sentinel = -1

        def __init__(self, **_: object) -> None: ...

        def start(self) -> None:
            raise OSError(12, "Cannot allocate memory")


def test_a_process_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    async def start_again() -> None:
        ours = process.ModelProcess(ModelSource("tiny", Config(), ""), Metrics())
        start = ours.start

        async def noting() -> None:
            tried.append(1)
            if len(tried) == 3:
                ours.ready = True
            else:
                await start()

        monkeypatch.setattr(ours, "start", noting)
        await ours._start_again()
        ours.stop()

    monkeypatch.setattr(process, "get_context", lambda _: Unstartable)
    monkeypatch.setattr(process, "MAX_PAUSE_SECONDS", 0)
    asyncio.run(start_again())
    assert len(tried) == 3


class Loading:
    """Stands in for a process that has loaded a model, whose weights the test names; starting it tells them."""

    weights: tuple[str, ...]
    sentinel = 0

    def __init__(self, *, args: tuple[Connection, ModelSource], **_: object) -> None:
        self.connection = args[0]

    def start(self) -> None:
        self.connection.send(replace(Starting().facts, weights=Loading.weights))

    def kill(self) -> None: ...

    def join(self) -> None: ...


class LoadingContext:
    """Starts them."""

    Pipe, Process = staticmethod(Pipe), Loading


def test_a_process_with_other_weights_takes_no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async def replace_twice() -> list[bool]:
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", lambda *_: None)
        ours, found = process.ModelProcess(ModelSource("tiny", Config(), ""), Metrics()), []
        for weights in ("old", "new", "old"):
            Loading.weights = (weights,)
            with suppress(UserError):
                await ours.start()
            found.append(ours.ready)
            ours.ready = False
        ours.stop()
        return found

    monkeypatch.setattr(process, "get_context", lambda _: LoadingContext)
    assert asyncio.run(replace_twice()) == [True, False, True]


class Starting:
    """Stands in for a process that loads a model; all of a test load at the same time, or wait for ever."""

    running: int
    most: int

    def __init__(self, *_: object) -> None:
        self.ready = False
        self.facts = ModelFacts("en", "de", "torch", Starting.device, True, True, True, 4, weights=Starting.weights())

    device = "cpu"
    weights: Callable[[], tuple[str, ...]] = tuple

    async def start(self) -> None:
        Starting.running += 1
        Starting.most = max(Starting.most, Starting.running)
        await asyncio.sleep(0)
        Starting.running -= 1
        self.ready = True


@pytest.mark.parametrize(
    ("has_gpu", "wanted", "device", "started", "together"),
    [
        (False, "auto", "cpu", 4, 4),
        (True, "auto", "cpu", 4, 3),  # the first one finds out that the GPU is of no use
        (True, "auto", "cuda", 1, 1),
        (True, "cpu", "cpu", 4, 4),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only PyTorch knows of GPUs")
def test_processes_load_the_model_at_the_same_time_unless_a_gpu_may_have_it(
    monkeypatch: pytest.MonkeyPatch, has_gpu: bool, wanted: str, device: str, started: int, together: int
) -> None:
    monkeypatch.setattr(process, "GPU_DEVICES", ("/dev/null",) if has_gpu else ("/dev/no-such-device",))
    monkeypatch.setattr(process, "ModelProcess", Starting)
    monkeypatch.setattr(Starting, "device", device)
    Starting.running = Starting.most = 0
    config = Config(runtime=RuntimeConfig(device=wanted, threads=4))
    processes = process.ModelProcesses(ModelSource("tiny", config, ""), Metrics())
    asyncio.run(processes.start())
    assert (processes.parallel, Starting.most) == (started, together)
    assert all(each.ready for each in processes.processes)


def test_processes_that_have_loaded_different_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ModelProcess", Starting)
    numbers = count()
    monkeypatch.setattr(Starting, "weights", lambda: (str(next(numbers)),))
    Starting.running = Starting.most = 0
    config = Config(runtime=RuntimeConfig(device="cpu", threads=2))
    with pytest.raises(UserError, match="weights of model tiny have changed"):
        asyncio.run(process.ModelProcesses(ModelSource("tiny", config, ""), Metrics()).start())
