"""What a process of a model says if the model cannot be loaded."""

import signal
from multiprocessing import Pipe
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.serving import process, worker
from nmt.features.serving.metrics import Metrics
from nmt.features.serving.requests import Failure, ModelSource


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
