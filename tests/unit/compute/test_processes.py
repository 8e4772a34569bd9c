"""Functions in helper processes, which give results in order and end with their parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from nmt.compute import processes
from nmt.errors import UserError
from shared.processes import is_alive
from tests.quick_processes import wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that is stopped does not end with its parent")
def test_a_process_that_is_stopped_ends_with_its_parent() -> None:
    command = [sys.executable, "-m", "tests.unit.compute.stopping_helper"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    helper = int(done.stdout)
    wait_for(lambda: not is_alive(helper))


def test_a_helper_process_leaves_ctrl_c_to_its_parent_and_may_start_others() -> None:
    assert processes.run_in_process(_handler_and_quotient, 7, 2) == (signal.SIG_IGN, (3, 1))


def _handler_and_quotient(number: int, divisor: int) -> tuple[object, tuple[int, int]]:
    return signal.getsignal(signal.SIGINT), processes.run_in_process(divmod, number, divisor)


def results(workers: int, make: Callable[..., Callable[[int], object]], *args: object) -> list[object]:
    return list(processes.map_in_processes(workers, "tests", range(12), make, *args))


def sleeping(seconds: float) -> Callable[[int], int]:
    def sleep(item: int) -> int:
        time.sleep(seconds * (item % 3))
        return item

    return sleep


def failing(exit_code: int) -> Callable[[int], int]:
    def fail(item: int) -> int:
        if item == 7 and exit_code:
            os._exit(exit_code)
        if item == 7:
            raise UserError("seven")
        return item

    return fail


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_order_and_errors_come_back(workers: int) -> None:
    assert results(workers, sleeping, 0.02) == list(range(12))
    with pytest.raises(UserError, match=r"^seven$"):
        results(workers, failing, 0)


def test_killed_process_is_an_error() -> None:
    with pytest.raises(UserError, match=r"a process that tests was killed, perhaps because memory ran out"):
        results(2, failing, 7)
    with pytest.raises(UserError, match=r"a process that helps this one was killed, perhaps because memory ran out"):
        processes.run_in_process(os._exit, 7)
