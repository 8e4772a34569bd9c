"""The check of a device, rehearsed on the CPU."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.schema import ModelConfig
from nmt.estimate.measured import nearest_step
from nmt.estimate.operation import Part
from nmt.features.doctor import data_sheet, gpu, speed
from nmt.measuring import accuracy, search

SECTIONS = [
    "trials of fast operations",
    "training steps, compared with float64",
    "operations, compared with float64",
    "peaks",
    "training speed",
    "decoding speed",
    "a run on one device",
    "several devices",
    "fastest settings",
]
TINY = ("doctor.gpu=true", "runtime.device=cpu", "doctor.models=[tiny]", "training.batch_tokens=512",
        "doctor.timed_steps=1")  # fmt: skip


def found_in(folder: Path) -> dict[str, Any]:
    (file,) = (folder / "devices").glob("*.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def results(report: dict[str, Any], section: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["sections"][section]["results"]
    return found


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything small, so that only the path is tested."""
    monkeypatch.setitem(speed.SHAPES, "tiny", ModelConfig(layers=1, d_model=16, d_ff=32, heads=2))
    monkeypatch.setattr(speed, "WORDS", 200)
    monkeypatch.setattr(speed, "PAIRS", 300)
    monkeypatch.setitem(speed.DECODED_SENTENCES, "cpu", 1)
    monkeypatch.setitem(data_sheet.SIDES, "cpu", 64)
    monkeypatch.setitem(data_sheet.COPIED_BYTES, "cpu", 2**16)
    monkeypatch.setitem(gpu.SECONDS_PER_CHOICE, "cpu", 0.3)
    monkeypatch.setattr(search, "MIN_PATIENCE_SECONDS", 0.3)
    fp32 = accuracy.training_paths("cpu", compiled=False)[0]  # tests/integration/test_cuda.py compares all of them
    monkeypatch.setattr(accuracy, "training_paths", lambda *_, **__: [fp32])
    monkeypatch.setenv("CXX", "no-such-compiler")  # compiling takes half a minute


@pytest.mark.usefixtures("_small")
def test_all_sections_run_and_the_file_and_the_page_have_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *TINY, "doctor.run_steps=3", f"paths.outputs={tmp_path}"]) == 0
    said, report = capsys.readouterr().out, found_in(tmp_path)
    assert list(report["sections"]) == SECTIONS
    assert [name for name, section in report["sections"].items() if section["error"] or not section["results"]] == []
    half = report["device"]["precision"]
    (compared,) = results(report, "training steps, compared with float64")
    assert compared["correct"]
    assert 0 < compared["error"] < compared["tolerance"]
    (run,) = results(report, "a run on one device")
    assert (run["devices"], run["steps"], run["name"]) == (1, 3, "tiny")
    (file,), (page,) = ((tmp_path / "devices").glob(name) for name in ("*.json", "*.html"))
    step = nearest_step(file, 10_000, half, compiled=False)
    assert step is not None
    assert step.model == "tiny"
    assert {part: each > 0 for part, each in step.ratios.items()} == dict.fromkeys(Part, True)
    assert all(name in page.read_text(encoding="utf-8") for name in SECTIONS)
    assert "all results are correct" in said
    assert "docs/results.md: | NVIDIA H200 | big | ...\n  | " in said


def test_without_time_each_section_is_a_failure_and_the_file_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *TINY, "doctor.minutes=0", f"paths.outputs={tmp_path}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    sections = found_in(tmp_path)["sections"]
    assert list(sections) == SECTIONS
    assert all(section["error"] == "no time left" for section in sections.values())


def test_a_missing_gpu_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["doctor", "doctor.gpu=true", f"paths.outputs={tmp_path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "runtime.device=cpu rehearses" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong", ["doctor.models=[bigger]", "doctor.models=[]", "doctor.run_steps=0", "doctor.minutes=-1"]
)
def test_wrong_settings_are_refused_in_one_line(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "doctor.gpu=true", wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_results_go_to_a_file_and_not_to_another_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "doctor.gpu=true", "output=json"]) == 2
    assert "remove output=" in capsys.readouterr().err


def test_the_models_are_those_of_the_experiments() -> None:
    for name, experiment in (("base", "wmt14_en_de_base"), ("big", "wmt14_en_de_big")):
        assert speed.SHAPES[name] == compose([f"experiment={experiment}"]).model


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_two_processes_train_as_one_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [*TINY, "doctor.run_steps=20", "doctor.devices=2", "doctor.minutes=14", f"paths.outputs={tmp_path}"]
    code, said = main(["doctor", *words]), capfd.readouterr()
    assert code == 0, said.out + said.err
    links, run = results(found_in(tmp_path), "several devices")
    assert links["sums_are_exact"]
    assert links["alone"]["loss"] == pytest.approx(links["together"]["loss"], rel=2e-5)
    assert (run["devices"], run["steps"]) == (2, 20)
    assert run["last_loss"] < run["first_loss"]
    assert results(found_in(tmp_path), "fastest settings")[0]["setting"] == "default"
