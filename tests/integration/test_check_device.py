"""The script for the first contact with a device, run on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from check_device import __main__ as check_device

SCRIPTS = Path(__file__).parents[2] / "scripts" / "dev"
pytestmark = pytest.mark.slow

SMALL = ("--device", "cpu", "--shapes", "tiny", "--batch-tokens", "512", "--steps", "1", "--minutes", "4")


def check(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPTS / "check_device", *options],
        capture_output=True, text=True, timeout=290, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_cpu_is_checked_and_everything_is_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = check(*SMALL, "--processes", "2", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(file) in done.stdout
    report = json.loads(file.read_text(encoding="utf-8"))
    sections = report["sections"]
    assert [name for name, section in sections.items() if section["error"] or not section["results"]] == []
    precisions = [each["name"] for each in sections["training steps, compared with float64"]["results"]]
    assert precisions == ["fp32", "bf16"]
    operations = sections["operations, compared with float64"]["results"]
    assert len(operations) == 2 * (3 + 2 * 2)
    assert all(0 < each["error"] < each["tolerance"] for each in operations)
    (trained,) = sections["training speed"]["results"]
    assert 0 < trained["milliseconds"] * trained["tokens_per_second"] / 1000 <= 2 * 512
    assert 0 < trained["share_of_peak"] < 1
    assert trained["memory"] > trained["estimated_memory"] / 10
    (decoded,) = sections["decoding speed"]["results"]
    assert decoded["tokens_per_second"] > 0
    (links,) = sections["several devices"]["results"]
    assert links["devices"] == 2
    assert links["sums_are_exact"]
    assert sections["tuning"]["results"][0]["setting"] == "default"


def test_section_without_time_is_recorded_and_the_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = check(*SMALL[:-1], "0.001", "--json", str(file))
    assert done.returncode == 1
    sections = json.loads(file.read_text(encoding="utf-8"))["sections"]
    assert len(sections) == 7
    assert all(section["error"] == "no time left" for section in sections.values())


def test_check_needs_only_torch_numpy_and_the_core(tmp_path: Path) -> None:
    """Import everything that the script imports, with all other packages of the project hidden."""
    hidden = ("hydra", "omegaconf", "datasets", "sentencepiece", "sacrebleu", "sacremoses", "wandb", "tqdm",
              "safetensors", "pyarrow", "yaml", "jinja2", "markupsafe", "vl_convert")  # fmt: skip
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden!r})); sys.path.insert(0, {str(SCRIPTS)!r}); "
        "import check_device.__main__"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_missing_gpu_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(sys, "argv", ["check_device", "--device", "cuda"])
    assert check_device.main() == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
