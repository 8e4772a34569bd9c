"""The number of cores is found on every system, and in one place."""

import os
from pathlib import Path

import pytest

import nmt
from nmt.compute.cores import usable_cores
from nmt.compute.machine import prepare_machine
from nmt.config.schema import RuntimeConfig

PROJECT = Path(nmt.__file__).parents[2]


def test_only_cores_that_the_process_may_use_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 6}, raising=False)
    assert usable_cores() == 3


def test_machine_is_prepared_without_an_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    threads: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", threads.append)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    prepare_machine(RuntimeConfig(device="cpu"), local_processes=2)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    prepare_machine(RuntimeConfig(device="cpu"))
    assert threads == [3, 1]


def test_only_the_cores_module_counts_cores() -> None:
    ways = ("sched_getaffinity", "cpu_count")
    scripts = [path for path in (PROJECT / "scripts").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files = [*(PROJECT / "src").rglob("*.py"), *scripts]
    counting = [path.name for path in files if any(way in path.read_text(encoding="utf-8") for way in ways)]
    assert counting == ["cores.py"]
