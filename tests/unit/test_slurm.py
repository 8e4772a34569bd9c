"""scripts/slurm_train.sh, with stubs for Slurm, saves before the time limit and queues itself again."""

import os
import signal
import subprocess
from pathlib import Path

from tests.quick_processes import wait_for

TOP = Path(__file__).parents[2]

SRUN = """#!/bin/bash
# trains until it is asked to stop, and then leaves as nmt does
echo "srun $*" >> {notes}
trap 'echo saved >> {notes}; exit 143' TERM
touch {folder}/training
for _ in $(seq 1000); do sleep 0.02; done
"""


def test_job_near_its_time_limit_saves_and_queues_itself_again(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name, body in {
        "srun": SRUN.format(notes=notes, folder=tmp_path),
        "scontrol": f'#!/bin/sh\necho "scontrol $*" >> {notes}\necho node1\n',
        "python": "#!/bin/sh\n",
    }.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": str(tmp_path / "python"), "SLURM_JOB_ID": "77",
        "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_GPUS_ON_NODE": "8",
    }  # fmt: skip
    process = subprocess.Popen(["bash", TOP / "scripts" / "slurm_train.sh", "seed=3"], env=environment, cwd=TOP)
    wait_for((tmp_path / "training").exists)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 143
    lines = notes.read_text().splitlines()
    assert lines[-2:] == ["saved", "scontrol requeue 77"]
    assert "--nnodes=2 --nproc-per-node=8 --max-restarts=3" in lines[1]
    assert lines[1].endswith("-m nmt train seed=3")
