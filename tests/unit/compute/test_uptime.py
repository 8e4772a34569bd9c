"""How long a process has been running, beside what the process that started it saw."""

import subprocess
import sys
import time
from pathlib import Path

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


@pytest.mark.parametrize("content", [None, "", "1 (python) S"])
def test_without_a_readable_proc_file_time_counts_from_the_import(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uptime, "STAT", tmp_path / "stat")
    if content is not None:
        (tmp_path / "stat").write_text(content)
    monkeypatch.setattr(uptime, "_IMPORTED", time.monotonic() - 100)
    assert uptime.uptime() >= 100


def test_uptime_is_read_for_any_program_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    rest = " ".join(["0"] * 19 + ["0", "5"])
    plain.write_text(f"1 (python) {rest}")
    odd.write_text(f"1 (a) 7 (b c) {rest}")
    told = []
    for file in (plain, odd):
        monkeypatch.setattr(uptime, "STAT", file)
        monkeypatch.setattr(time, "clock_gettime", lambda _: 50.0)
        told.append(uptime.uptime())
    assert told == [50.0, 50.0]
