"""What a process of a model says if the model cannot be loaded."""

import asyncio
import signal
from itertools import count
from multiprocessing import Pipe
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


class Starting:
    """Stands in for a process that loads a model with other weights than those of the one before."""

    numbers = count()

    def __init__(self, *_: object) -> None:
        weights = (str(next(Starting.numbers)),)
        self.ready, self.facts = False, ModelFacts("en", "de", "torch", "cpu", True, True, True, 4, weights=weights)

    async def start(self) -> None:
        self.ready = True


def test_processes_that_have_loaded_different_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ModelProcess", Starting)
    config = Config(runtime=RuntimeConfig(device="cpu", threads=2))
    with pytest.raises(UserError, match="weights of model tiny have changed"):
        asyncio.run(process.ModelProcesses(ModelSource("tiny", config, ""), Metrics()).start())
