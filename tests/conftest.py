"""What every test stands on: the same random numbers, one thread, PyTorch's operations, no network and no account."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.model.kernels.c.library import use_operations


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)  # small tensors gain nothing from more; tests of threads set their number
    use_operations(False)  # until a test trains


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all homes; beside the tests' own folders, pytest would list thousands for each new one."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _no_network(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tempfile.mkdtemp(dir=_homes)
    monkeypatch.setenv("HF_HOME", home)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", home)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)


@pytest.fixture(autouse=True)
def _outside_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the make that runs the tests from a make that a test runs: it would take over its options and ARGS."""
    for name in ("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "ARGS"):
        monkeypatch.delenv(name, raising=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs a GPU where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
