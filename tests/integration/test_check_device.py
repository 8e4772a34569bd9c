"""The script that checks and times a device, run on the CPU."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_device.py"


def check(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=200, check=False)


def test_cpu_agrees_with_float64_and_is_timed() -> None:
    done = check("--device", "cpu", "--shapes", "tiny", "--batch-tokens", "512", "--steps", "1")
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stdout
    precisions = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("ok")]
    assert precisions == ["float32", "bfloat16"]
    (row,) = (line.split() for line in done.stdout.splitlines() if line.startswith("tiny"))
    milliseconds, tokens_a_second, share = float(row[2]), float(row[3].replace(",", "")), float(row[4].rstrip("%"))
    assert 0 < milliseconds * tokens_a_second / 1000 <= 2 * 512
    assert 0 < share < 100


def test_missing_gpu_is_reported_in_one_line() -> None:
    done = check("--device", "cuda")
    if done.returncode == 0:  # there is one
        return
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
