"""The fault campaign loses nothing: of the faults of a seed some of every kind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.toy import environment

TOP = Path(__file__).parents[2]


def campaign(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "scripts" / "dev" / "faults"), f"--folder={folder}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


def row(done: subprocess.CompletedProcess[str], name: str) -> list[int]:
    """Return the counts of a campaign: injected, recovered, refused, lost, and never injected, which do not count."""
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"{name} "))
    return [int(word.replace(",", "")) for word in line.removeprefix(name).split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="faults are injected by means of Linux")
def test_a_fault_campaign_loses_nothing(tmp_path: Path) -> None:
    trials = 60
    done = campaign(tmp_path, "--seed=2", f"--trials={trials}")
    assert done.returncode == 0, done.stdout + done.stderr
    injected, recovered, refused, lost, missed = row(done, "all")
    assert (injected + missed, lost) == (trials, 0)
    assert recovered + refused == injected >= 0.7 * trials
    assert f"{injected} injected, 0 lost; {missed} never injected" in done.stdout
    assert not list(tmp_path.iterdir())
