"""Functions in helper processes."""

import pytest

from nmt.compute import processes


def test_a_result_that_nobody_awaits_any_more_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "follow_parent", lambda: None)
    receiver, sender = processes.SPAWN.Pipe(duplex=False)
    receiver.close()
    processes._call(sender, len, ("abc",), {})


def test_an_error_is_sent_as_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "follow_parent", lambda: None)
    receiver, sender = processes.SPAWN.Pipe(duplex=False)
    processes._call(sender, int, ("no number",), {})
    assert isinstance(receiver.recv(), ValueError)
