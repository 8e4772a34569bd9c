"""A process that does not go on is named, with what it and the others do."""

import time
from typing import Any

import pytest

from nmt.compute.heartbeat import Beat, Heartbeat, Seen, who_hangs
from tests.quick_processes import wait_for

SECONDS = 20.0
"""Seconds after which a process hangs."""


class Board:
    """What all heartbeats of a test share."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.texts[key] = value

    def get(self, key: str) -> bytes:
        return self.texts[key].encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.texts for key in keys)


class Broken(Board):
    """A store whose process has ended."""

    def set(self, key: str, value: str) -> None:
        raise RuntimeError("Broken pipe")


def seen(silent: float = 0.0, **beat: Any) -> Seen:
    return Seen(Beat(**{"host": "node", "step": 7, "doing": "backward", **beat}), silent)


WAITING: dict[str, Any] = {"operations": 12, "operation": "gloo:all_reduce"}

W = "(step 8, backward, operation 12: gloo:all_reduce)"


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        (
            {0: seen(**WAITING), 1: seen(doing="between steps", operations=9), 2: seen(**WAITING)},
            f"no step for 60 seconds: the others wait {W} for rank 1 on node (step 8, between steps)",
        ),
        (
            {0: seen(**WAITING), 1: seen(step=6, doing="forward", host="far")},
            f"no step for 60 seconds: the others wait {W} for rank 1 on far (step 7, forward)",
        ),
        (
            {0: seen(), 1: seen(), 2: seen(silent=30, step=6, host="far")},
            "no step for 60 seconds: rank 2 on far (last heard of in step 7, backward) does not answer; it has "
            "been stopped or killed, or its machine cannot be reached",
        ),
        (
            {0: seen(**WAITING), 1: seen(**WAITING)},
            f"no step for 60 seconds: all ranks wait for each other {W}; the "
            "network between their devices may be broken",
        ),
        (
            {0: seen(), 1: seen(doing="", step=0)},
            "no step for 60 seconds: the others wait (step 8, backward) for rank 1 on node (step 1, start)",
        ),
    ],
)
def test_the_line_says_who_hangs_where(processes: dict[int, Seen], expected: str) -> None:
    assert who_hangs(processes, 60, 10) == expected


class Group:
    """The heartbeats of all ranks, which beat when the test says so, at a time that it sets."""

    def __init__(self, operations: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.lines, self.stuck = 0.0, list[str](), list[int]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        board = Board()
        self.ranks = [self._rank(board, rank, count, len(operations)) for rank, count in enumerate(operations)]

    def _rank(self, board: Board, rank: int, count: int, size: int) -> Heartbeat:
        return Heartbeat(
            board, rank, size, seconds=SECONDS, report=lambda line: self.lines.append(f"{rank}: {line}"),
            operations=lambda: (count, "gloo:all_reduce"), stuck=lambda: self.stuck.append(rank),
        )  # fmt: skip

    def pass_time(self, seconds: float, silent: int = -1) -> None:
        """Let all ranks beat but a silent one."""
        end = self.now + seconds
        while self.now < end:
            self.now += self.ranks[0].interval
            for rank, each in enumerate(self.ranks):
                if rank != silent:
                    each.beat()


def test_processes_that_wait_are_reported_once_by_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group([5, 5, 4], monkeypatch)
    for each in group.ranks:
        each.step, each.doing, each.paused = 3, "backward", False
    group.pass_time(SECONDS)
    assert (group.lines, group.stuck) == ([], [])
    group.pass_time(3 * SECONDS)
    assert sorted(group.stuck) == [0, 1, 2]
    (line,) = group.lines
    assert line.startswith(
        "0: no step for 45 seconds: the others wait (step 4, backward, operation 5: gloo:all_reduce)"
    )
    assert "for rank 2 on" in line


def test_another_hang_is_reported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group([5, 4], monkeypatch)
    for step in (3, 4):
        for each in group.ranks:
            each.step, each.paused = step, False
        group.pass_time(4 * SECONDS)
    assert ["step 4" in line for line in group.lines] == [True, False]
    assert ["step 5" in line for line in group.lines] == [False, True]


@pytest.mark.parametrize("silent", [0, 1, 2])
def test_a_silent_process_is_reported_by_the_first_that_is_alive(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group([5, 5, 5], monkeypatch)
    for each in group.ranks:
        each.step, each.doing, each.paused = 3, "backward", False
    group.pass_time(0.5 * SECONDS)
    group.pass_time(5 * SECONDS, silent)
    (line,) = group.lines
    assert line.startswith("1: " if silent == 0 else "0: ")
    assert f"rank {silent} on" in line
    assert "does not answer" in line


def test_a_process_that_goes_on_or_may_take_its_time_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group([1, 1], monkeypatch)
    group.ranks[1].paused = False  # the other validates
    for step in range(20):
        group.ranks[1].step = step
        group.pass_time(0.9 * SECONDS)
    assert (group.lines, group.stuck) == ([], [])


def test_the_thread_beats_until_it_is_closed() -> None:
    board = Board()
    beat = Heartbeat(board, 0, 1, seconds=0.02, report=print)
    beat.start()
    wait_for(lambda: board.check(["beat/0"]))
    beat.close()
    assert not beat._thread.is_alive()


def test_a_lost_store_ends_the_thread_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    beat = Heartbeat(Broken(), 0, 2, seconds=0.02, report=print)
    beat.start()
    beat._thread.join(60)
    assert not beat._thread.is_alive()
    beat.close()
    assert capfd.readouterr() == ("", "")
