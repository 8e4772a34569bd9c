"""A bar on a terminal, plain lines elsewhere, nothing in the other processes."""

import io

import pytest

from nmt.training.progress import TrainingProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def train(progress: TrainingProgress) -> None:
    with progress:
        for step in range(1, 5):
            progress.advance()
            if step % 2 == 0:
                progress.show(f"loss {step}.0")
        progress.write("valid loss 3.0")


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    train(TrainingProgress(steps=14, done=10))
    assert capsys.readouterr().err == "step 12/14  loss 2.0\nstep 14/14  loss 4.0\nvalid loss 3.0\n"


def test_on_a_terminal_progress_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    train(TrainingProgress(steps=14, done=10))
    written = terminal.getvalue()
    assert "14/14" in written
    assert "loss 4.0" in written
    assert "step 12/14" not in written
    assert "valid loss 3.0\n" in written


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_processes_other_than_the_main_one_show_nothing(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    output = stream()
    monkeypatch.setattr("sys.stderr", output)
    train(TrainingProgress(steps=14, shown=False))
    assert output.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_run_that_has_no_time_for_all_steps_shows_its_end(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    output = stream()
    monkeypatch.setattr("sys.stderr", output)
    progress = TrainingProgress(steps=20, done=10)
    progress.expect_end(14)
    train(progress)
    assert "14/14" in output.getvalue()
    assert "/20" not in output.getvalue().rpartition("\r")[2]
