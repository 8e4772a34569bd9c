"""Diverging training is reported with its step, stops, and can be resumed; memory that runs out is one line."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.compute.signals import Interruptible
from nmt.data.loader import GlobalBatch
from nmt.training.trainer import Trainer
from tests.integration.toy import call, succeed

Poison = Callable[[set[int]], None]


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Poison:
    """Makes the gradients of given steps NaN; three of them in a row are too many."""
    monkeypatch.setattr("nmt.training.statistics.MAX_BAD_STEPS", 3)
    update = Trainer.update

    def spoil(steps: set[int]) -> None:
        def poisoned(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
            factor = math.nan if self.step + 1 in steps else 1.0
            hook = next(iter(self.model.parameters())).register_hook(lambda gradient: gradient * factor)
            update(self, work, interruptible)
            hook.remove()

        monkeypatch.setattr(Trainer, "update", poisoned)

    return spoil


def test_bad_step_is_reported(settings: list[str], tmp_path: Path, poison: Poison) -> None:
    poison({7})
    done = call(["train", *settings, f"paths.outputs={tmp_path}", "training.steps=12", "training.log_every=5"])
    assert done.returncode == 0, done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert "step 7 had no finite gradient and changed nothing" in warning
    lines = (tmp_path / "toy" / "metrics.jsonl").read_text().splitlines()
    window = next(line for line in map(json.loads, lines) if line["event"] == "train" and line["step"] == 10)
    assert window["skipped"] == 1
    assert 0 < window["nll"] < window["loss"] < 10


def test_too_many_bad_steps_in_a_row_stop_the_run_which_resumes_once_the_fault_is_gone(
    settings: list[str], whole: Path, tmp_path: Path, poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison({*range(13, 100)})
    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    done = call(command)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "training diverged: 3 steps in a row, from step 13 on, had no finite gradient" in said
    assert (tmp_path / "toy" / "checkpoints" / "last").resolve().name == "step-00000010"
    monkeypatch.undo()
    succeed(command)
    ours, theirs = (
        (folder / "toy" / "checkpoints" / "step-00000040" / "model.safetensors").read_bytes()
        for folder in (tmp_path, whole)
    )
    assert ours == theirs


real_update = Trainer.update


def greedy_step(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
    if self.step == 7:
        raise MemoryError
    real_update(self, work, interruptible)


def greedy_validation(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("function", "greedy"),
    [
        ("nmt.training.trainer.Trainer.update", greedy_step),
        ("nmt.training.validation.held_out_loss", greedy_validation),
    ],
)
def test_memory_error_after_the_first_step_names_a_remedy(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, greedy: Callable[..., None]
) -> None:
    monkeypatch.setattr(function, greedy)
    done = call(["train", *settings, f"paths.outputs={tmp_path}", "training.valid_every=7"])
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "nmt: out of memory after step 7: free some memory, or lower training.device_tokens"
    )
