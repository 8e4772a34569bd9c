"""How long a process has been running, beside what the process that started it saw."""

import subprocess
import sys
import time

import pytest

from nmt.compute import uptime

PROGRAM = "import time; time.sleep(0.2); from nmt.compute.uptime import uptime; print(uptime())"


@pytest.mark.skipif(not uptime.STAT.exists(), reason="the system does not tell when a process began")
def test_time_counts_from_the_start_of_the_process() -> None:
    before = time.monotonic()
    told = float(subprocess.check_output([sys.executable, "-c", PROGRAM]))
    passed = time.monotonic() - before
    tick = 0.02
    assert 0.2 - tick <= told <= passed + tick
