"""The share of its time that a process waits for a processor, next to programs that share one with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from nmt.compute import contention

SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
WORK = """
import os, sys, time
from nmt.compute.contention import Contention
os.sched_setaffinity(0, {int(sys.argv[1])})
contention, end = Contention(), time.process_time() + 0.2
while time.process_time() < end: pass
print(contention.share())
"""


@contextmanager
def spinning(programs: int, processor: str) -> Iterator[None]:
    """Let some programs use a processor all the time."""
    with ExitStack() as closing:
        for _ in range(programs):
            program = closing.enter_context(subprocess.Popen([sys.executable, "-c", SPIN, processor]))
            closing.callback(program.kill)
        yield


@pytest.mark.skipif(not any(map(sum, contention._times().values())), reason="the system counts no waiting time")
def test_a_process_with_others_on_its_processor_waits_most_of_the_time() -> None:
    processor = str(min(os.sched_getaffinity(0)))
    with spinning(3, processor):
        told = subprocess.check_output([sys.executable, "-c", WORK, processor], timeout=60)
    assert 0.5 < float(told) < 1  # a fair share is a quarter, or less if more programs run
