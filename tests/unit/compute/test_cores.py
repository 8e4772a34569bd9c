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
    monkeypatch.setattr("nmt.compute.cores.platform.system", lambda: "Linux")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def cpu(system: Path, number: int) -> Path:
    return system / "devices/system/cpu" / f"cpu{number}"


@pytest.mark.usefixtures("system")
def test_only_cores_that_the_process_may_use_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (usable_cores(), computing_threads()) == (8, 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 6})  # as under taskset
    assert (usable_cores(), computing_threads()) == (3, 3)


@pytest.mark.parametrize(
    ("quota", "expected"), [("150000 100000", 1), ("400000 100000", 4), ("20000 100000", 1), ("max 100000", 8)]
)
def test_the_quota_of_a_container_is_kept(system: Path, quota: str, expected: int) -> None:
    write(system / "fs/cgroup/cpu.max", quota)
    assert (usable_cores(), computing_threads()) == (expected, expected)


def test_the_smallest_quota_of_nested_groups_is_kept(system: Path) -> None:
    write(system / "cgroup", "0::/jobs/own")
    write(system / "fs/cgroup/jobs/own/cpu.max", "max 100000")
    write(system / "fs/cgroup/jobs/cpu.max", "300000 100000")
    assert usable_cores() == 3


@pytest.mark.parametrize(("quota", "expected"), [("250000", 2), ("-1", 8)])
def test_the_quota_of_the_first_version_of_control_groups_is_kept(system: Path, quota: str, expected: int) -> None:
    write(system / "fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    write(system / "fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    assert usable_cores() == expected


@pytest.mark.parametrize(
    ("file", "limit", "expected"),
    [
        ("jobs/own/memory.max", "5000000", 5_000_000),
        ("jobs/memory.max", "6000000", 6_000_000),
        ("jobs/memory.max", "max", None),
        ("memory/memory.limit_in_bytes", "7000000", 7_000_000),
        ("memory/memory.limit_in_bytes", "9223372036854771712", None),  # none
    ],
)
def test_the_memory_of_a_machine_is_at_most_that_of_the_container(
    system: Path, file: str, limit: str, expected: int | None
) -> None:
    whole = memory_of(torch.device("cpu"))
    write(system / "cgroup", "0::/jobs/own")
    write(system / "fs/cgroup" / file, limit)
    assert memory_of(torch.device("cpu")) == (expected or whole)


def test_two_logical_processors_of_a_core_compute_with_one_thread(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        write(cpu(system, number) / "topology/thread_siblings_list", f"{number % 4},{number % 4 + 4}")
    assert (usable_cores(), computing_threads()) == (8, 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 5})  # the second ones of two cores
    assert computing_threads() == 2


def test_efficiency_cores_do_not_compute(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):  # two cores with two threads each, and four efficiency cores
        write(cpu(system, number) / "topology/thread_siblings_list", f"{number // 2 * 2}-{number // 2 * 2 + 1}")
    for number in range(4, 8):
        write(cpu(system, number) / "topology/thread_siblings_list", str(number))
    write(system / "devices/cpu_core/cpus", "0-3")
    assert (usable_cores(), computing_threads()) == (8, 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 6, 7})
    assert computing_threads() == 3


def test_small_cores_of_arm_do_not_compute(system: Path) -> None:
    for number, capacity in enumerate([1024, 1024, 800, 800, 400, 400, 400, 400]):
        write(cpu(system, number) / "cpu_capacity", str(capacity))
    assert (usable_cores(), computing_threads()) == (8, 4)
