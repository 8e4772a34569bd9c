"""The script that measures data preparation, at a small size."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "dev" / "full_size"


def measure(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--pairs=3000", f"--folder={folder}", *words, "tokenizer.vocab_size=3000"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "steps"), [((), 13), (("--random-ids",), 4)])
def test_every_step_is_measured_and_no_file_is_left(tmp_path: Path, words: tuple[str, ...], steps: int) -> None:
    done = measure(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    table = done.stdout[done.stdout.rindex("task  ") :].splitlines()
    assert len(table) == 1 + steps + 1
    assert table[-1].endswith("ceiling 4 GiB: kept")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_memory_above_the_ceiling_fails(tmp_path: Path) -> None:
    done = measure(tmp_path, "--random-ids", "--ceiling=0.01")
    assert done.returncode == 1
    assert done.stdout.rstrip().endswith("ceiling 0.01 GiB: EXCEEDED")
