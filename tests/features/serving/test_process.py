"""What a process of a model says if the model cannot be loaded."""

import signal
from multiprocessing import Pipe

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.serving import process, worker
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
