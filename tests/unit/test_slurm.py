"""scripts/slurm_train.sh, with stubs for Slurm, saves before the time limit and queues itself again."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

SRUN = """#!/bin/bash
# trains until it is asked to stop, and then leaves as nmt does
echo "srun $*" >> {notes}
trap 'echo saved >> {notes}; exit 143' TERM
touch {folder}/training
for _ in $(seq 1000); do sleep 0.02; done
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return the file to which the stubs write."""
    written = tmp_path / "notes"
    programs = {
        "srun": SRUN.format(notes=written, folder=tmp_path),
        "scontrol": f'#!/bin/sh\necho "scontrol $*" >> {written}\necho node1\n',
        "python": "#!/bin/sh\nexit ${DESCRIBED:-0}\n",
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return written


def start(folder: Path, **more: str) -> subprocess.Popen[str]:
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(folder / "python"), "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "77", "SLURM_GPUS_ON_NODE": "8", **more,
    }  # fmt: skip
    script = str(TOP / "scripts" / "slurm_train.sh")
    return subprocess.Popen(["bash", script, "seed=3"], env=environment, text=True, stderr=subprocess.PIPE, cwd=TOP)


def ended(folder: Path, number: signal.Signals) -> int:
    process = start(folder)
    deadline = time.monotonic() + 60
    while not (folder / "training").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode


def test_job_near_its_time_limit_saves_and_queues_itself_again(tmp_path: Path, notes: Path) -> None:
    assert ended(tmp_path, signal.SIGUSR1) == 143
    lines = notes.read_text().splitlines()
    assert lines[-2:] == ["saved", "scontrol requeue 77"]
    assert "--nnodes=2 --nproc-per-node=8 --max-restarts=3" in lines[1]
    assert lines[1].endswith("-m nmt train seed=3")
