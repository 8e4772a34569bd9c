"""The number of cores is found on every system, and in one place."""

import os
from pathlib import Path

import pytest
import torch

from nmt.compute import cores
from nmt.compute.cores import computing_threads, usable_cores
from nmt.compute.machine import memory_of


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in place of /sys, on a machine with 8 logical processors."""
    monkeypatch.setattr(cores, "SYSTEM", tmp_path)
    monkeypatch.setattr(cores, "PROCESS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "150000 100000"}, 1),
        ({"cpu.max": "400000 100000"}, 4),
        ({"cpu.max": "20000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 8),
        ({"jobs/own/cpu.max": "max 100000", "jobs/cpu.max": "300000 100000"}, 3),
    ],
)
def test_the_quota_of_a_container_is_kept(system: Path, files: dict[str, str], expected: int) -> None:
    write(system / "cgroup", "0::/jobs/own")
    for name, text in files.items():
        write(system / "fs/cgroup" / name, text)
    assert (usable_cores(), computing_threads()) == (expected, expected)


@pytest.mark.parametrize(
    ("file", "limit", "expected"),
    [
        ("jobs/own/memory.max", "5000000", 5_000_000),
        ("jobs/memory.max", "6000000", 6_000_000),
        ("jobs/memory.max", "max", None),
    ],
)
def test_the_memory_of_a_machine_is_at_most_that_of_the_container(
    system: Path, file: str, limit: str, expected: int | None
) -> None:
    whole = memory_of(torch.device("cpu"))
    write(system / "cgroup", "0::/jobs/own")
    write(system / "fs/cgroup" / file, limit)
    assert memory_of(torch.device("cpu")) == (expected or whole)


@pytest.mark.parametrize(
    ("usable", "expected"), [(range(8), 2), ({3, 5, 6}, 1), ({4, 5, 6}, 3), ({2, 3}, 1), ({1, 3}, 2)]
)
def test_one_thread_computes_per_fast_core(
    system: Path, monkeypatch: pytest.MonkeyPatch, usable: set[int], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(usable))  # as under taskset
    for number in range(8):  # two cores with two threads each, and four efficiency cores
        siblings = str(number) if number > 3 else f"{number // 2 * 2}-{number // 2 * 2 + 1}"
        write(system / f"devices/system/cpu/cpu{number}/topology/thread_siblings_list", siblings)
    write(system / "devices/cpu_core/cpus", "0-3")
    assert (usable_cores(), computing_threads()) == (len(usable), expected)
