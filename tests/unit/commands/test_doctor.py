"""`nmt doctor` against what the machine itself says, and where something is missing or broken."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.commands import doctor
from nmt.packages import PACKAGES


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_json_has_what_the_machine_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "output=json", f"paths.data={tmp_path}/a/b"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["free_disk_gib"][f"{tmp_path}/a/b"] == pytest.approx(shutil.disk_usage(tmp_path).free / 2**30, rel=0.2)
    assert found["memory_gib"] == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    assert {*found["packages"], *found["missing_packages"]} == {*PACKAGES}
    assert found["hub"] == "not asked, because HF_HUB_OFFLINE is set"


def test_text_says_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "C compiler:  none" in said
    assert "PyTorch:     cannot be imported" in said
    assert main(["doctor", "output=page.txt"]) == 2
    assert "doctor prints text, or JSON" in capsys.readouterr().err


def test_the_hub_is_asked_unless_it_must_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.hub() == "not asked, because HF_HUB_OFFLINE is set"
    monkeypatch.delenv("HF_HUB_OFFLINE")
    for endpoint in ("http://127.0.0.1:9", "no address"):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert doctor.hub().startswith(f"{endpoint} is not reachable (")
