"""Training, resuming and translating in fp16 on a CPU, as a user runs them."""

import json
from pathlib import Path

import numpy as np
import pytest

import nmt
from tests.integration.toy import call, succeed

pytestmark = pytest.mark.slow  # tests/unit/training/test_loss_scale.py and test_precision.py check the parts


def metrics(folder: Path, event: str) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="module")
def half(settings: list[str]) -> list[str]:
    return [*settings, "runtime.precision=fp16", "model.dropout=0"]


def test_a_run_in_fp16_follows_fp32_and_resumes_exactly(half: list[str], tmp_path: Path) -> None:
    outputs = {name: tmp_path / name for name in ("fp32", "whole", "parts")}
    runs = [("fp32", ["runtime.precision=fp32"], 20), ("whole", [], 20), ("parts", [], 10), ("parts", [], 20)]
    for name, extra, steps in runs:
        done = call(["train", *half, *extra, f"training.steps={steps}", f"paths.outputs={outputs[name]}"])
        assert done.returncode == 0, done.stderr
        if name == "whole":
            assert "cpu in fp16 (runtime.precision=fp16, which is slow on this CPU)" in done.stdout + done.stderr
    found = {name: metrics(folder / "toy", "train") for name, folder in outputs.items()}
    losses = {name: [event["loss"] for event in events] for name, events in found.items()}
    np.testing.assert_allclose(losses["whole"], losses["fp32"], rtol=5e-3)
    assert losses["whole"] == losses["parts"]
    assert {event["loss_scale"] for event in found["whole"]} == {2.0**15}


def test_translations_in_fp16_are_those_of_fp32(settings: list[str], corpus: Path, tmp_path: Path) -> None:
    longer = [*settings, "training.steps=100", "training.valid_every=100", "training.save_every=100"]
    succeed(["train", *longer, f"paths.outputs={tmp_path}"])
    lines = [line for split in ("test", "valid", "train") for line in (corpus / f"{split}.en").read_text().splitlines()]
    translations = []
    for precision in ("fp32", "fp16"):
        model = nmt.load(tmp_path / "toy", checkpoint="last", device="cpu", precision=precision, threads=1)
        translations.append([each.text for each in model.translate(lines)])
    exact, found = translations
    assert len(set(exact)) > 50
    assert sum(a == b for a, b in zip(exact, found, strict=True)) >= 0.99 * len(lines)
