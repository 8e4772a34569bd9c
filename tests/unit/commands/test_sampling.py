"""`nmt translate` with samples."""

from pathlib import Path

import pytest

from nmt.cli import main
from tests.unit.commands.test_evaluate_and_translate import Run, content, run
from tests.unit.commands.test_score import printed, text

__all__ = ["content", "run", "text"]  # fixtures


def test_samples_change_only_with_the_seed(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, overrides = run
    seen = []
    for seed in (1, 1, 2):
        words = ["decoding.strategy=sample", "decoding.temperature=3", f"seed={seed}"]
        assert main(["translate", *overrides, f"input={text}", *words]) == 0
        seen.append(printed(capsys))
    assert seen[0] == seen[1] != seen[2]
