"""`nmt doctor` against what the machine itself says, and where something is missing or broken."""

import os
import sys
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import doctor


def test_what_the_machine_has_and_lacks_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["doctor", f"paths.data={tmp_path}/a/b"]) == 0
    said = capsys.readouterr().out
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    for found in ("C compiler:  none", "PyTorch:     cannot be imported", f"memory:      {memory:.1f} GiB\n"):
        assert found in said
    assert f"GiB in {tmp_path}/a/b/" in said
    assert "Hub:         not asked" in said


def test_a_hub_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    for endpoint in ("http://127.0.0.1:9", "no address", "http://no address"):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert doctor.hub().startswith(f"{endpoint} is not reachable (")


def test_a_compiler_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc '")
    assert "CC cannot be read (No closing quotation)" in str(doctor._compiler())
