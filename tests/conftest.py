"""What every test stands on: the same random numbers, one thread, PyTorch's operations, no network and no account.

PyTorch is imported inside functions: the process that only distributes tests to others needs two seconds less. The
package comes first, because it sets how long PyTorch's threads wait actively.
"""

import gc
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.compute.cores import usable_cores
from tests.browser import Browser, start

pytest_plugins = ["tests.integration.toy_run"]
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2 << 30
"""Bytes that the temporary folders of all tests may take together."""
SLOW_SECONDS = 900
"""The time limit of a slow test; pyproject.toml has that of the others. Machines that do other work, too, need it."""
MOST_WORKERS = 4
"""Processes that run tests: each holds a copy of torch, and one file of tests is not divided."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary folders in memory if they fit and programs can start there: each file on a disk takes long."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and _has_room(os.statvfs(MEMORY)):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    gc.set_threshold(50_000, 20, 100)  # torch's many objects make each collection slow


def _has_room(volume: os.statvfs_result) -> bool:
    return volume.f_bavail * volume.f_frsize >= MEMORY_NEEDED and not volume.f_flag & os.ST_NOEXEC


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`, which `make test` uses."""
    return min(usable_cores(), MOST_WORKERS)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    import numpy as np
    import torch

    from nmt.compute.machine import Machine
    from nmt.model.backends.chosen import choose

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)  # small tensors gain nothing from more; tests of threads set their number
    choose(Machine(torch.device("cpu"), torch.float32), kernels=False)  # until a test trains


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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the tests of all pages: it takes seconds to start."""
    driver = start(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests more time, and leave out what needs a GPU where there is none."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        import torch

        for item in () if torch.cuda.is_available() else on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what was imported: it would search millions of objects again and again."""
    gc.collect()
    gc.freeze()


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Name a test as soon as it fails: a long run may be ended before pytest lists the failed ones."""
    if not report.failed:
        return None
    kind = "failed" if report.when == "call" else "error"
    return kind, f"\n{kind}: {report.nodeid}\n", kind.upper()
