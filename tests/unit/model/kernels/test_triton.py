"""The tests of the backends again, with the kernels of GPUs in Triton's interpreter; and their compilation."""

import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.unit.model.backends import INTERPRETED

FOLDER = Path(__file__).parent
TRITON = metadata.version("triton") if find_spec("triton") else ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INTERPRETED, reason="runs outside the interpreter only"),
    pytest.mark.skipif(not TRITON, reason="triton is not installed"),
]


@pytest.mark.skipif(TRITON.startswith("3.6."), reason="the interpreter of triton 3.6 fails with current numpy")
def test_triton_kernels_pass_the_same_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER.parent / "test_backends.py")]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("target", ["cuda 80", "cuda 86", "cuda 89", "cuda 90", "hip gfx90a", "hip gfx942"])
def test_kernels_compile_for_gpus_and_fit_into_them(target: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "compile_kernels.py"), *target.split()]
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
