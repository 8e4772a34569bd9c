"""Functions in helper processes, which end with their parent."""

import os
import signal
import time

from nmt.compute import processes
from shared.processes import is_alive
from tests.quick_processes import Running, wait_for


def kill_parent() -> int:
    """Start a helper process, and print its id and end without a chance to end it."""
    helper = processes.SPAWN.Process(target=wait_for_end)
    helper.start()
    print(helper.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def wait_for_end() -> None:
    processes.end_with_parent()
    time.sleep(600)


def test_a_process_ends_with_its_parent() -> None:
    done = Running(kill_parent).wait()
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_for(lambda: not is_alive(int(done.stdout)))


def test_a_helper_process_leaves_ctrl_c_to_its_parent_and_may_start_others() -> None:
    assert processes.run_in_process(_handler_and_quotient, 7, 2) == (signal.SIG_IGN, (3, 1))


def _handler_and_quotient(number: int, divisor: int) -> tuple[object, tuple[int, int]]:
    return signal.getsignal(signal.SIGINT), processes.run_in_process(divmod, number, divisor)
