"""The share of its time that a process waits for a processor, next to programs that share one with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nmt.compute import contention
from nmt.compute.contention import Contention

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


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ({"7": "1000 900 5"}, {"7": "1600 1100 9"}, 0.25),
        ({"7": "1000 900 5", "8": "9 9 1"}, {"7": "1300 1000 9", "9": "300 300 2"}, 0.4),
        ({"7": "5 5 1"}, {"7": "50 5 2"}, 0.0),
        ({"7": "5 5 1"}, {"7": "5 5 1"}, 0.0),
        ({"7": "0 0 0"}, {"7": "0 0 0"}, 0.0),
        ({}, {}, 0.0),
        ({"7": ""}, {"7": "other text"}, 0.0),
    ],
    ids=["one", "ended and begun", "alone", "asleep", "not counted", "no files", "unreadable"],
)
def test_share_is_that_of_living_threads_since_the_beginning(
    before: dict[str, str], after: dict[str, str], share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(threads: dict[str, str], name: str) -> None:
        monkeypatch.setattr(contention, "THREADS", tmp_path / name)
        for thread, counters in threads.items():
            (tmp_path / name / thread).mkdir(parents=True)
            (tmp_path / name / thread / "schedstat").write_text(counters)

    write(before, "before")
    begun = Contention()
    write(after, "after")
    assert begun.share() == share
