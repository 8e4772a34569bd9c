"""A bar on a terminal, a line now and then elsewhere, nothing in the other processes."""

import io
from contextlib import closing

import pytest

from nmt.training.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def train(progress: Progress) -> None:
    with closing(progress.bar):
        for step in range(1, 5):
            progress.bar.update()
            if step % 2 == 0:
                progress.show(10 + step, f"loss {step}.0")
            progress.validation = f"validation: loss {step}.5"
        progress.write("warning: hot")


def test_without_a_terminal_a_line_is_shown_each_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 59.0, 61.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    train(Progress(steps=16, done=10))
    line = "step 14 of 16, 00:30 left: loss 4.0; validation: loss 3.5"
    assert capsys.readouterr().err.splitlines() == [line, "warning: hot"]


def test_on_a_terminal_progress_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    train(Progress(steps=14, done=10))
    written = terminal.getvalue()
    assert "14/14" in written
    assert "loss 4.0; validation: loss 3.5" in written
    assert "step 12 of 14" not in written
    assert "warning: hot\n" in written
