"""Ratios that were measured on a kind of device, in the estimates of `nmt describe`."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.commands.describe import as_text, describe
from nmt.config.compose import compose
from nmt.estimate.measured import STEPS, MeasuredStep, measured_file, nearest_step
from nmt.estimate.operation import Part

DEVICE = "NVIDIA H100 80GB HBM3"
BASE = 63_082_496


def step(model: str = "base", parameters: int = BASE, *, factor: float = 1.0, **others: Any) -> dict[str, Any]:
    estimated = dict.fromkeys(Part, 0.001)
    seconds = {part: factor * each for part, each in estimated.items()} | others.pop("seconds", {})
    plain = {"precision": "bf16", "compiled": False, **others}
    return MeasuredStep(DEVICE, model, parameters, **plain, seconds=seconds, estimated=estimated).to_json()


def write(outputs: Path, *steps: object) -> Path:
    path = measured_file(outputs, "h100")
    path.parent.mkdir()
    path.write_text(json.dumps({"device": {"name": DEVICE}, STEPS: steps}), encoding="utf-8")
    return path


def hours(outputs: Path, *words: str) -> float:
    found = describe(compose([f"paths.outputs={outputs}", "describe.device=h100", *words]), 1).estimate
    assert found
    return found.hours


def test_without_a_file_the_estimate_is_that_of_the_formula(tmp_path: Path) -> None:
    config = compose([f"paths.outputs={tmp_path}", "describe.device=h100"])
    figures = describe(config, 1)
    assert "ratios" not in as_text(config, figures)
    assert figures.as_json(config)["estimate"]["assumptions"]["measured"] is None


def test_the_estimate_is_multiplied_by_the_ratios_and_says_so(tmp_path: Path) -> None:
    plain = hours(tmp_path)
    path = write(tmp_path, step(factor=1.5))
    assert hours(tmp_path) == pytest.approx(1.5 * plain)
    config = compose([f"paths.outputs={tmp_path}", "describe.device=h100"])
    figures = describe(config, 1)
    assert f"the ratios that {DEVICE} measured for base ({path}): forward 1.50, loss 1.50" in as_text(config, figures)
    ratios = figures.as_json(config)["estimate"]["assumptions"]["measured"]["ratios"]
    assert json.loads(json.dumps(ratios)) == pytest.approx({str(part): 1.5 for part in Part})


def test_the_device_may_be_named_in_upper_case(tmp_path: Path) -> None:
    plain, path = hours(tmp_path), write(tmp_path, step(factor=1.5))
    assert path.name == "h100.json"
    config = compose([f"paths.outputs={tmp_path}", "describe.device=H100"])
    figures = describe(config, 1)
    assert figures.estimate
    assert figures.estimate.hours == pytest.approx(1.5 * plain)
    assert f"({path})" in as_text(config, figures)


def test_each_part_has_its_own_ratio(tmp_path: Path) -> None:
    plain = hours(tmp_path)
    path, added = write(tmp_path, step()), 0.0
    for part in Part:
        path.write_text(json.dumps({STEPS: [step(seconds={part: 0.002})]}), encoding="utf-8")
        assert hours(tmp_path) > plain
        added += hours(tmp_path) - plain
    assert added == pytest.approx(plain)


@pytest.mark.parametrize("words", [["runtime.precision=fp32"], ["runtime.compile=true"], ["describe.device=a100"]])
def test_ratios_of_another_precision_way_or_device_are_not_used(words: list[str], tmp_path: Path) -> None:
    plain = hours(tmp_path, *words)
    write(tmp_path, step(factor=3.0))
    assert hours(tmp_path, *words) == plain


def test_the_model_that_is_closest_in_size_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path, step(), step("big", 214_000_000))
    sizes = {10_000: "base", BASE: "base", 110_000_000: "base", 130_000_000: "big", 10**9: "big"}
    found = {size: nearest_step(path, size, "bf16", compiled=False) for size in sizes}
    assert {size: each and each.model for size, each in found.items()} == sizes


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"steps": 3}', '{"steps": [3]}', '{"steps": [{}]}', "[" * 10_000, "\udcff",
        json.dumps({STEPS: [step(factor=0.0)]}), json.dumps({STEPS: [step(factor=float("nan"))]}),
        json.dumps({STEPS: [step(parameters=0)]}), json.dumps({STEPS: [{**step(), "compiled": "no"}]}),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_in_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert main(["describe", "describe.device=h100", f"paths.outputs={tmp_path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert "measure again, or delete it" in line
