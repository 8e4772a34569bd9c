"""`nmt doctor` against what the machine itself says, and where something is missing or broken."""

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.cli import main
from nmt.doctor import command, machine
from nmt.packages import PACKAGES, Package


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


def test_a_missing_package_is_named_as_pip_knows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {"not_there": Package("another-name>=2", "a test"), "json": Package("json>=1", "a test")}
    monkeypatch.setattr(command, "PACKAGES", declared)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "1 of 2 optional ones are installed" in said
    assert "missing: not_there, for a test: " in said
    assert "-m pip install 'another-name>=2'\n" in said


@pytest.mark.parametrize("quoted", ["'", '"cc'])
def test_a_compiler_that_cannot_be_split_is_none(monkeypatch: pytest.MonkeyPatch, quoted: str) -> None:
    monkeypatch.setenv("CC", quoted)
    assert machine.compiler() == ""


def test_a_hub_that_does_not_answer_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)

    def refuse(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", refuse)
    assert machine.hub().startswith("not reachable (timed out)")


def test_a_password_of_a_proxy_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy:3128")
    assert machine.hub() == "not asked, because a proxy is set (proxy:3128)"


def test_an_output_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "output=page.txt"]) == 2
    assert "doctor prints text, or JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("endpoint", "asked", "said"),
    [
        ("", ("huggingface.co", 443), "reachable"),
        ("https://hub.example.org", ("hub.example.org", 443), "reachable at https://hub.example.org"),
        ("http://hub.example.org:8080/x", ("hub.example.org", 8080), "reachable at http://hub.example.org:8080/x"),
    ],
)
def test_the_hub_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, asked: tuple[str, int], said: str
) -> None:
    found: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], _: float) -> SimpleNamespace:
        found.append(address)
        return SimpleNamespace(close=lambda: None)

    for name in ("HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr("socket.create_connection", connect)
    assert machine.hub() == said
    assert found == [asked]


@pytest.mark.parametrize("endpoint", ["https://[::1", "http://hub.example.org:99999"])
def test_an_address_of_the_hub_that_is_none_is_an_answer(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    for name in ("HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert machine.hub().startswith(f"not reachable at {endpoint} (")
