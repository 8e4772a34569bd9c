"""A run that is interrupted within a long operation saves immediately, and ends with the same result once resumed."""

import os
import signal
from pathlib import Path

import pytest

from nmt.data.loader import MicroBatch
from nmt.training.loss import Losses
from nmt.training.objective import Objective
from tests.integration.test_training import events, losses
from tests.integration.toy import call, succeed


def test_run_interrupted_within_the_last_validation_resumes_with_the_same_result(
    settings: list[str], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, passes = Objective.forward, 0

    def interrupted(self: Objective, batch: MicroBatch) -> Losses:
        nonlocal passes
        passes += self.training
        if passes > 26 and not self.training:
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("it went on")
        return forward(self, batch)

    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    with monkeypatch.context() as patched:
        patched.setattr(Objective, "forward", interrupted)
        done = call(command)
    assert done.returncode == 143
    assert "everything is saved" in done.stdout
    succeed(command)
    assert losses(tmp_path) == losses(whole)
    assert figures(tmp_path) == figures(whole)
    assert checkpoints(tmp_path) == checkpoints(whole)


def figures(outputs: Path) -> list[tuple[int, float, float]]:
    return [(line["step"], line["loss"], line["bleu"]) for line in events(outputs, "valid")]


def checkpoints(outputs: Path) -> dict[str, bytes]:
    folder = outputs / "toy" / "checkpoints"
    return {path.name: (path / "model.safetensors").read_bytes() for path in folder.iterdir()}
