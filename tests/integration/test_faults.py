"""The fault campaign loses nothing: a short selection of faults by seed, and, if slow tests run, all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.toy import environment

TOP = Path(__file__).parents[2]


def campaign(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "scripts" / "faults"), f"--folder={folder}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


def row(done: subprocess.CompletedProcess[str], name: str) -> list[int]:
    """Return the counts of a campaign: tried, recovered, refused, lost."""
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"{name} "))
    return [int(word) for word in line.removeprefix(name).split()]


@pytest.mark.skipif(sys.platform != "linux", reason="faults are injected by means of Linux")
def test_short_fault_campaign_loses_nothing(tmp_path: Path) -> None:
    done = campaign(tmp_path, "--trials=12", "--seed=1")
    assert done.returncode == 0, done.stdout + done.stderr
    tried, recovered, refused, lost = row(done, "all")
    assert (tried, lost) == (12, 0)
    assert recovered + refused == 12
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="faults are injected by means of Linux")
def test_whole_fault_campaign_loses_nothing(tmp_path: Path) -> None:
    done = campaign(tmp_path, "--seed=2")
    assert done.returncode == 0, done.stdout + done.stderr
    tried, *_, lost = row(done, "all")
    assert tried >= 200
    assert lost == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sabotage", "said"),
    [
        ("runs.checkpoints.Checkpoints.remove_leftovers = lambda self: None", "is left over"),
        ("runs.format.checksum = lambda path: 'always the same'", "step-00000012/model.safetensors differs"),
    ],
)
def test_campaign_notices_a_disabled_safeguard(tmp_path: Path, sabotage: str, said: str) -> None:
    arguments = ["faults", f"--folder={tmp_path}", "--stage=train"]
    arguments += ["--only=killed at a file operation"] if "left" in said else ["--only=flipped bit"]
    program = (
        f"import runpy, sys; from nmt import runs; import nmt.runs.checkpoints, nmt.runs.checkpoint_files; {sabotage}; "
        f"sys.argv = {arguments}; runpy.run_path({str(TOP / 'scripts' / 'faults')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 1
    assert any(line.startswith("LOST: ") and said in line for line in done.stdout.splitlines())
