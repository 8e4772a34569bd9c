"""The fault campaign loses nothing: of the faults of a seed some of every kind."""

import json
import os
import signal
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


def sabotaged(folder: Path, sabotage: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a campaign after a statement that changes the code under test, or the campaign itself."""
    dev = str(TOP / "scripts" / "dev")
    faults = f"{dev}/faults"
    program = (
        f"import runpy, sys; sys.path.insert(0, {dev!r}); from faults import injections; import nmt.runs.checkpoints, "
        f"nmt.runs.checkpoint_files; from nmt import runs; {sabotage}; "
        f"sys.argv = {['faults', f'--folder={folder}', *options]}; runpy.run_path({faults!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sabotage", "only", "said"),
    [
        ("runs.checkpoints.Checkpoints.remove_leftovers = lambda self: None", "killed at a file operation", "leftover"),
        ("runs.checkpoint_files.checksum = lambda path: 'always the same'", "flipped bit", "model.safetensors differs"),
    ],
)
def test_campaign_notices_a_disabled_safeguard(tmp_path: Path, sabotage: str, only: str, said: str) -> None:
    done = sabotaged(tmp_path, sabotage, "--command=train", f"--only={only}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(line.startswith("LOST: ") and said in line for line in done.stdout.splitlines()), done.stdout


@pytest.mark.slow
def test_campaign_does_not_count_faults_that_are_never_injected(tmp_path: Path) -> None:
    sabotage = "injections.at_file_call = lambda *_, **__: injections.nothing"
    done = sabotaged(
        tmp_path, sabotage, "--command=average", "--only=disk full", f"--record={tmp_path / 'record.jsonl'}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    injected, *_, lost, missed = row(done, "all")
    assert (injected, lost) == (0, 0)
    assert missed > 0
    assert f"0 injected, 0 lost; {missed} never injected" in done.stdout
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert [each["verdict"] for each in record] == ["never injected"] * missed


@pytest.mark.slow
def test_interrupted_campaign_keeps_its_table(tmp_path: Path) -> None:
    command = [sys.executable, str(TOP / "scripts" / "dev" / "faults"), f"--folder={tmp_path}", "--command=average"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    ) as process:
        assert process.stdout
        assert process.stderr
        next(line for line in process.stdout if line.startswith("recovered"))
        os.killpg(process.pid, signal.SIGINT)
        table, errors = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert "\nall " in table
    assert "Traceback" not in table + errors
    assert errors.startswith("faults: ended after "), errors
