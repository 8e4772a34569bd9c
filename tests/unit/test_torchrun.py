"""scripts/torchrun restarts processes that may succeed the next time, and no others."""

import subprocess
from pathlib import Path

import pytest

from tests.quick_processes import Running, run_script

TORCHRUN = Path(__file__).parents[2] / "scripts" / "torchrun"

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
Path(__file__).with_name(f"{attempt}.{rank}").touch()
while len([*Path(__file__).parent.glob(f"{attempt}.*")]) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
sys.exit(int(dict(word.split(":") for word in sys.argv[1:])[rank]))
"""
"""Notes each attempt, and exits with the code of its rank when all have started, even if torchrun asks it to end."""


def ended(folder: Path, *codes: int) -> tuple[subprocess.CompletedProcess[str], int]:
    """Return how torchrun ends, with two restarts, if its processes exit with these codes, and the attempts."""
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    words = [f"{rank}:{code}" for rank, code in enumerate(codes)]
    options = ["--standalone", f"--nproc-per-node={len(codes)}", "--max-restarts=2"]
    done = Running(run_script, TORCHRUN, *options, str(program), *words, OMP_NUM_THREADS="1").wait()
    return done, len({path.stem for path in folder.glob("*.[0-9]")})


@pytest.mark.parametrize("codes", [(2, 2), (1, 2)], ids=str)
def test_an_error_of_the_user_ends_the_launch_at_the_first_attempt(codes: tuple[int, int], tmp_path: Path) -> None:
    done, attempts = ended(tmp_path, *codes)
    assert (done.returncode, attempts) == (2, 1)
    assert done.stderr.count("\n") == codes.count(1)  # torchrun's own line about the process that ended first


@pytest.mark.parametrize("codes", [(143, 143), (143, 1)], ids=str)
def test_processes_that_a_signal_has_stopped_are_not_started_again(codes: tuple[int, int], tmp_path: Path) -> None:
    done, attempts = ended(tmp_path, *codes)
    assert (done.returncode, attempts) == (143, 1)


def test_other_failures_are_tried_again(tmp_path: Path) -> None:
    done, attempts = ended(tmp_path, 1)
    assert (done.returncode, attempts) == (1, 3)
