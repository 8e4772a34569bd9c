"""scripts/launch: one process a GPU, and one where there are none."""

import os
import subprocess
from pathlib import Path

import pytest

LAUNCH = Path(__file__).parents[2] / "scripts" / "launch"


def launched(folder: Path, gpus: int, visible: str | None = None, describe: int = 0) -> tuple[int, list[str]]:
    """Exit code and the Python command lines, with stand-ins for Python and nvidia-smi that only take notes."""
    notes = folder / "notes"
    listing = "\n".join(f"GPU {index}: some device" for index in range(gpus))
    programs = {
        "nvidia-smi": f"cat <<END\n{listing}\nEND" if gpus else "exit 9",
        "python": f'echo "$*" >> {notes}; case "$*" in *describe*) exit {describe};; esac; exit 7',
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(folder / "python")}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run([LAUNCH, "train", "data.train=[a,b]"], env=environment, check=False)
    return done.returncode, notes.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("gpus", "visible"), [(0, None), (1, None), (8, "3"), (8, "")])
def test_one_process(tmp_path: Path, gpus: int, visible: str | None) -> None:
    assert launched(tmp_path, gpus, visible) == (7, ["-m nmt train data.train=[a,b]"])


@pytest.mark.parametrize(("gpus", "visible", "processes"), [(8, None, 8), (8, "0,5,6", 3)])
def test_a_process_for_each_gpu(tmp_path: Path, gpus: int, visible: str | None, processes: int) -> None:
    check, run = "-m nmt describe data.train=[a,b]", "-m nmt train data.train=[a,b]"
    torchrun = f"{LAUNCH.parent}/torchrun --standalone --nproc-per-node={processes} {run}"
    assert launched(tmp_path, gpus, visible) == (7, [check, torchrun])


def test_wrong_settings_start_no_processes(tmp_path: Path) -> None:
    assert launched(tmp_path, 8, describe=2) == (2, ["-m nmt describe data.train=[a,b]"])
