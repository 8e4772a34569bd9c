"""Diverging training is reported with its step, and stops."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.compute.signals import Interruptible
from nmt.data.loader import GlobalBatch
from nmt.training.trainer import Trainer
from tests.integration.toy import call

Poison = Callable[[set[int]], None]


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Poison:
    """Makes the gradients of given steps NaN; three of them in a row are too many."""
    monkeypatch.setattr("nmt.training.loop.MAX_BAD_STEPS", 3)
    update = Trainer.update

    def spoil(steps: set[int]) -> None:
        def poisoned(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
            factor = torch.nan if self.step + 1 in steps else 1.0
            hook = next(iter(self.model.parameters())).register_hook(lambda gradient: gradient * factor)
            update(self, work, interruptible)
            hook.remove()

        monkeypatch.setattr(Trainer, "update", poisoned)

    return spoil


def warnings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("warning:")]


def test_bad_step_is_reported_and_batch_prints_its_sentences(
    settings: list[str], tmp_path: Path, poison: Poison
) -> None:
    poison({7})
    done = call(["train", *settings, f"paths.outputs={tmp_path}", "training.steps=12", "training.log_every=5"])
    assert done.returncode == 0, done.stderr
    (warning,) = warnings(done.stderr)
    assert "at step 7 (epoch 1, batch 7; `nmt batch batch.step=7`" in warning
    lines = (tmp_path / "toy" / "metrics.jsonl").read_text().splitlines()
    window = next(line for line in map(json.loads, lines) if line["event"] == "train" and line["step"] == 10)
    assert window["skipped"] == 1
    assert 0 < window["nll"] < window["loss"] < 10
    shown = call(["batch", *settings, "batch.step=7"])
    assert shown.returncode == 0, shown.stderr
    numbers = [int(number) for number in shown.stderr.rpartition("numbers ")[2].split(",")]
    data = Path(next(s for s in settings if s.startswith("paths.data=")).split("=")[1])
    texts = [(data / "toy" / f"train.{language}").read_text().splitlines() for language in ("en", "de")]
    expected = [f"{texts[0][number]}\t{texts[1][number]}" for number in numbers]
    assert shown.stdout.splitlines() == expected


def test_too_many_bad_steps_in_a_row_stop_the_run(settings: list[str], tmp_path: Path, poison: Poison) -> None:
    poison({*range(13, 100)})
    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    done = call(command)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "3 steps in a row, from step 13 on, had no finite gradient" in said
    assert "`nmt batch batch.step=13`" in said
    assert "train under another name= with" in said
    assert (tmp_path / "toy" / "checkpoints" / "last").resolve().name == "step-00000010"


def test_stopped_run_resumes_once_the_fault_is_gone(
    settings: list[str], whole: Path, tmp_path: Path, poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison({*range(13, 100)})
    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    assert call(command).returncode == 2
    monkeypatch.undo()
    assert call(command).returncode == 0
    ours, theirs = (
        (folder / "toy" / "checkpoints" / "step-00000040" / "model.safetensors").read_bytes()
        for folder in (tmp_path, whole)
    )
    assert ours == theirs


def test_far_too_high_learning_rate_stops_the_run(settings: list[str], tmp_path: Path) -> None:
    done = call(["train", *settings, f"paths.outputs={tmp_path}", "training.learning_rate=1e30"])
    assert done.returncode == 2
    assert "training diverged" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("0", "batch.step=0 must be at least 1"),
        ("999999999999", "batch.step=999999999999 lies beyond training.steps=40"),
    ],
)
def test_batch_refuses_steps_outside_the_run(step: str, message: str, settings: list[str]) -> None:
    done = call(["batch", *settings, f"batch.step={step}"])
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()])
def test_memory_error_after_the_first_step_names_a_remedy(
    error: Exception, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Trainer.update

    def greedy(self: Trainer, work: GlobalBatch, interruptible: Interruptible) -> None:
        if self.step == 11:
            raise error
        update(self, work, interruptible)

    monkeypatch.setattr(Trainer, "update", greedy)
    done = call(["train", *settings, f"paths.outputs={tmp_path}"])
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "out of memory at step 12" in said
    assert "training.device_tokens" in said
