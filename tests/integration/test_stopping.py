"""A run that is interrupted within a long operation saves immediately, and ends with the same result once resumed."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.tree import Config
from nmt.data.loader import MicroBatch
from nmt.evaluation.split import Split
from nmt.model.interface import TranslationModel
from nmt.text.tokenizer import Tokenizer
from nmt.training import validation
from nmt.training.loss import Losses
from nmt.training.objective import Objective
from tests.integration.test_training import events, losses
from tests.integration.toy import call, succeed


def stop_here(*_: object, **__: object) -> None:
    """Send this process SIGTERM within an operation that may take long."""
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("it went on")


def in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    forward, calls = Objective.forward, iter(range(1_000_000))

    def slow(self: Objective, batch: MicroBatch) -> Losses:
        if self.training and next(calls) == 26:
            stop_here()
        return forward(self, batch)

    monkeypatch.setattr(Objective, "forward", slow)


def in_the_last_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = validation.decoded_bleu

    validations: list[str] = []

    def slow(
        model: TranslationModel,
        machine: Machine,
        config: Config,
        tokenizer: Tokenizer,
        interruptible_together: Interruptible,
        split: Split,
    ) -> float:
        validations.append(split.name)
        if len(validations) == -(-config.training.steps // config.training.valid_every):
            with interruptible_together():
                stop_here()
        return decode(model, machine, config, tokenizer, interruptible_together, split)

    monkeypatch.setattr(validation, "decoded_bleu", slow)


@pytest.mark.parametrize("where", [in_a_step, in_the_last_validation])
def test_run_interrupted_within_an_operation_resumes_with_the_same_result(
    where: Callable[[pytest.MonkeyPatch], None],
    settings: list[str],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    with monkeypatch.context() as patched:
        where(patched)
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
