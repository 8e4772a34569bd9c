"""The tests of the operations again, computed by the Triton kernels in Triton's interpreter."""

import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from nmt.model.kernels.backend import uses_triton
from nmt.model.kernels.softmax import softmax_gradient_
from tests.unit.model.kernels import INTERPRETED

FOLDER = Path(__file__).parent
TRITON = metadata.version("triton") if find_spec("triton") else ""
OPERATIONS = ("residual", "rectifier", "short_attention", "softmax")


@pytest.mark.skipif(INTERPRETED, reason="runs outside the interpreter only")
@pytest.mark.skipif(not TRITON, reason="triton is not installed")
@pytest.mark.skipif(TRITON.startswith("3.6."), reason="the interpreter of triton 3.6 fails with current numpy")
@pytest.mark.slow
def test_triton_kernels_pass_the_same_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    files = [str(FOLDER / f"test_{name}.py") for name in (*OPERATIONS, "triton")]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    run = subprocess.run([*command, *files], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.skipif(not TRITON, reason="triton is not installed")
@pytest.mark.parametrize("target", ["cuda 80", "cuda 86", "cuda 89", "cuda 90", "hip gfx90a", "hip gfx942"])
def test_kernels_compile_for_gpus_and_fit_into_them(target: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "compile_kernels.py"), *target.split()]
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.skipif(not INTERPRETED, reason="runs in the interpreter only")
def test_triton_kernels_compute_all_tensors_in_the_interpreter() -> None:
    assert uses_triton(torch.zeros(1, dtype=torch.bfloat16))
    ours = {name for name in sys.modules if name.startswith("nmt.model.kernels.triton_")}
    assert len(ours) == len(OPERATIONS), "some tests before this one ran plain PyTorch"


@pytest.mark.skipif(INTERPRETED, reason="runs outside the interpreter only")
def test_tensors_on_a_cpu_use_plain_pytorch() -> None:
    assert not uses_triton(torch.zeros(1))
    softmax_gradient_(torch.zeros(1, 2), torch.tensor([1]), 0.1)
    assert not [name for name in sys.modules if name.startswith("nmt.model.kernels.triton_")]
