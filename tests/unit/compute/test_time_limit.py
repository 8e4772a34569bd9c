"""Blocks of code that take too long are interrupted."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nmt.compute.time_limit import OutOfTimeError, time_limit


def endless() -> None:
    while True:
        pass


def test_block_that_takes_too_long_is_interrupted() -> None:
    with pytest.raises(OutOfTimeError), time_limit(0.02):
        endless()


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_block_without_time_does_not_begin(seconds: float) -> None:
    with pytest.raises(OutOfTimeError), time_limit(seconds):
        pytest.fail("the block has begun")


@contextmanager
def alarms(seconds: float) -> Iterator[list[int]]:
    """Yield the alarms that reach the caller of the block, who has set a timer, unless the seconds are 0."""
    reached: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: reached.append(number))
    outer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield reached
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *outer)


def test_timer_and_handler_of_the_caller_are_restored() -> None:
    with alarms(0.05) as reached:
        with time_limit(30):
            pass
        while not reached:
            time.sleep(0.001)
    assert reached == [signal.SIGALRM]


def test_the_timer_of_the_caller_goes_on_as_if_there_had_been_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    with alarms(30):
        with time_limit(60):
            monkeypatch.setattr(time, "monotonic", lambda: begun + 20)
        assert 5 < signal.getitimer(signal.ITIMER_REAL)[0] < 11


def test_no_alarm_follows_a_block_that_ended_in_time() -> None:
    with alarms(0) as reached:
        with time_limit(0.02):
            pass
        time.sleep(0.1)
    assert reached == []


def test_inner_limit_leaves_the_outer_one_in_force() -> None:
    def block() -> None:
        with time_limit(0.5):
            with pytest.raises(OutOfTimeError), time_limit(0.01):
                endless()
            endless()

    with pytest.raises(OutOfTimeError):
        block()


def test_block_in_another_thread_runs_on() -> None:
    done: list[bool] = []

    def work() -> None:
        with time_limit(10):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
