"""The fault campaign loses nothing: of the faults of a seed some of every kind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.toy import environment

TOP = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="faults are injected by means of Linux")
def test_a_fault_campaign_loses_nothing(tmp_path: Path) -> None:
    trials = 50
    tool = str(TOP / "scripts" / "dev" / "faults")
    command = [sys.executable, tool, f"--folder={tmp_path}", "--seed=2", f"--trials={trials}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("all "))
    recovered, refused, lost, missed = map(int, row.removeprefix("all ").split())
    assert (recovered + refused + missed, lost) == (trials, 0)
    assert recovered + refused >= 0.7 * trials
    assert not list(tmp_path.iterdir())
