"""Functions in helper processes, which end with their parent."""

import os
import signal
import sys

import pytest

from nmt.compute import processes
from shared.processes import is_alive
from tests.quick_processes import Running, wait_for


def do_nothing() -> None:
    """Do not even notice that a connection is closed."""
    processes.end_with_parent()
    os.kill(os.getpid(), signal.SIGSTOP)


def die_without_ending_a_helper() -> None:
    process = processes.SPAWN.Process(target=do_nothing)
    process.start()
    assert process.pid
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that is stopped does not end with its parent")
def test_a_process_that_is_stopped_ends_with_its_parent() -> None:
    done = Running(die_without_ending_a_helper).wait()
    assert done.returncode == -signal.SIGKILL, done.stderr
    helper = int(done.stdout)
    wait_for(lambda: not is_alive(helper))


@pytest.mark.slow
def test_a_helper_process_leaves_ctrl_c_to_its_parent_and_may_start_others() -> None:
    assert processes.run_in_process(_handler_and_quotient, 7, 2) == (signal.SIG_IGN, (3, 1))


def _handler_and_quotient(number: int, divisor: int) -> tuple[object, tuple[int, int]]:
    return signal.getsignal(signal.SIGINT), processes.run_in_process(divmod, number, divisor)
