"""Translating in fp16 on a CPU, as a user does it."""

from pathlib import Path

import pytest

import nmt
from tests.integration.toy import succeed


@pytest.mark.slow  # tests/unit/training/test_loss_scale.py and test_precision.py check the parts
def test_translations_in_fp16_are_those_of_fp32(settings: list[str], corpus: Path, tmp_path: Path) -> None:
    longer = [*settings, "training.steps=100", "training.valid_every=100", "training.save_every=100"]
    succeed(["train", *longer, "runtime.precision=fp16", f"paths.outputs={tmp_path}"])
    lines = [line for split in ("test", "valid", "train") for line in (corpus / f"{split}.en").read_text().splitlines()]
    translations = []
    for precision in ("fp32", "fp16"):
        model = nmt.load(tmp_path / "toy", checkpoint="last", device="cpu", precision=precision, threads=1)
        translations.append([each.text for each in model.translate(lines)])
    exact, found = translations
    assert len(set(exact)) > 50
    assert sum(a == b for a, b in zip(exact, found, strict=True)) >= 0.99 * len(lines)
