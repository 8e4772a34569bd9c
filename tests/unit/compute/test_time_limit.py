"""Blocks of code that take too long are interrupted."""

import signal
import threading
import time

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


def test_timer_and_handler_of_the_caller_are_restored() -> None:
    reached: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: reached.append(number))
    outer = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with time_limit(30):
            pass
        while not reached:
            time.sleep(0.001)
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *outer)
    assert reached == [signal.SIGALRM]


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
