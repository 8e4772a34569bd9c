"""Functions in helper processes, which end with their parent."""

import signal
import subprocess
import sys

import pytest

from nmt.compute import processes
from shared.processes import is_alive
from tests.quick_processes import wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that is stopped does not end with its parent")
def test_a_process_that_is_stopped_ends_with_its_parent() -> None:
    command = [sys.executable, "-m", "tests.unit.compute.stopping_helper"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    helper = int(done.stdout)
    wait_for(lambda: not is_alive(helper))


@pytest.mark.slow
def test_a_helper_process_leaves_ctrl_c_to_its_parent_and_may_start_others() -> None:
    assert processes.run_in_process(_handler_and_quotient, 7, 2) == (signal.SIG_IGN, (3, 1))


def _handler_and_quotient(number: int, divisor: int) -> tuple[object, tuple[int, int]]:
    return signal.getsignal(signal.SIGINT), processes.run_in_process(divmod, number, divisor)
