"""Runs at addresses are compared like those in local folders."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config.folders import COPIES
from nmt.config.schema import Config
from nmt.storage.mirror import STATE, Mirror
from tests.features.remote_files.conftest import cache, memory
from tests.features.report.conftest import first
from tests.integration.toy import succeed

__all__ = ["cache", "first", "memory"]
DATA, OUTPUTS = "memory://bucket/data", "memory://bucket/runs"
COMPARE = ["report", "compare=[first,second]", "data.corpus=toy", "name=first"]
STORED = [f"paths.data={DATA}", f"paths.outputs={OUTPUTS}", "checkpoint=last"]


@pytest.fixture
def stored(memory: Any, first: Config) -> Config:
    """Store two runs and their corpus at addresses."""
    for address, folder in (
        (f"{DATA}/toy", first.data_folder),
        *((f"{OUTPUTS}/{name}", first.runs_folder / name) for name in ("first", "second")),
    ):
        Mirror(address, folder, "paths.outputs").push()
        (folder / STATE).unlink()
    return first


def test_stored_runs_are_compared_like_local_ones(stored: Config) -> None:
    local = [f"paths.data={stored.paths.data}", f"paths.outputs={stored.paths.outputs}", "checkpoint=last"]
    here, there = (succeed([*COMPARE, *settings]).splitlines() for settings in (local, STORED))
    assert {*here[:-1]} <= {*there}
    assert any("second" in line for line in here)


def test_runs_are_compared_as_they_are_now(stored: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*COMPARE, *STORED]
    before = succeed(words)
    monkeypatch.setenv(COPIES, str(tmp_path / "other machine"))
    elsewhere = Mirror(f"{OUTPUTS}/second", tmp_path / "second", "paths.outputs")
    elsewhere.pull()
    for name in ("test.json", "test.hyp.txt"):
        (tmp_path / "second" / "eval" / name).write_bytes((stored.run_folder / "eval" / name).read_bytes())
    elsewhere.push()
    monkeypatch.setenv(COPIES, str(tmp_path / "copies"))
    assert succeed(words) != before
