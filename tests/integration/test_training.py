"""Training as a user runs it: to the end, interrupted, on several processes, with wrong settings."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.training import memory_check
from tests.integration.toy import call, succeed
from tests.quick_processes import run_together


def events(outputs: Path, event: str = "train") -> list[dict[str, Any]]:
    lines = (outputs / "toy" / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == event]


def losses(outputs: Path) -> list[tuple[int, float, float]]:
    return [(line["step"], line["loss"], line["gradient_norm"]) for line in events(outputs)]


def weights(outputs: Path, step: int) -> dict[str, torch.Tensor]:
    return load_file(outputs / "toy" / "checkpoints" / f"step-{step:08}" / "model.safetensors")


def test_run_leaves_the_documented_files_and_events(whole: Path) -> None:
    folder = whole / "toy"
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "best", "last", "step-00000010", "step-00000020", "step-00000030", "step-00000040",
    ]  # fmt: skip
    assert {path.name for path in folder.iterdir()} == {
        ".lock", "checkpoints", "config.yaml", "environment.json", "metrics.jsonl",
    }  # fmt: skip
    train, valid = events(whole), events(whole, "valid")
    assert [line["step"] for line in train] == list(range(1, 41))
    assert set(train[0]) >= {
        "event", "step", "time", "loss", "nll", "perplexity", "learning_rate", "tokens_per_second", "gradient_norm",
    }  # fmt: skip
    assert [line["step"] for line in valid] == [20, 40]
    assert set(valid[0]) >= {"loss", "nll", "perplexity", "bleu"}
    for line in (*train, *valid):
        assert line["perplexity"] == pytest.approx(math.exp(line["nll"]))
    assert train[-1]["loss"] < train[0]["loss"] - 0.5
    assert json.loads((folder / "environment.json").read_text())["packages"]["torch"]


def test_batches_that_do_not_fit_in_memory_are_divided_as_with_the_setting(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explicit, chosen = tmp_path / "explicit", tmp_path / "chosen"
    short = [*settings, "training.steps=3"]
    succeed(["train", *short, "training.device_tokens=100", f"paths.outputs={explicit}"])
    monkeypatch.setattr(memory_check, "_fits", lambda _trainer, _store, _batch, tokens: 0 < tokens < 200)
    done = call(["train", *short, f"paths.outputs={chosen}"])
    assert done.returncode == 0, done.stderr
    assert "so this run takes training.device_tokens=100; the global batches are the same" in done.stderr
    assert losses(chosen) == losses(explicit)
    assert "device_tokens: 100\n" in (chosen / "toy" / "config.yaml").read_text(encoding="utf-8")


def test_finished_run_says_so_and_changes_nothing(settings: list[str], whole: Path) -> None:
    before = (whole / "toy" / "metrics.jsonl").read_bytes()
    said = succeed(["train", *settings, f"paths.outputs={whole}"])
    assert "finished" in said
    assert "training.steps above 40" in said
    assert (whole / "toy" / "metrics.jsonl").read_bytes() == before


RESUMED = {
    "sampled words": ["training.sampled_words=20"],
    "everything": [
        "training.optimizer=muon", "training.weight_decay=0.01", "model.layers=2",
        "model.attention_dropout=0.1", "model.activation_dropout=0.1", "noise.bpe_dropout=0.2",
    ],
}  # fmt: skip
"""Settings that can be used together."""


@pytest.mark.parametrize("chosen", RESUMED.values(), ids=RESUMED)
def test_a_run_in_bf16_learns_and_resumes_exactly(settings: list[str], tmp_path: Path, chosen: list[str]) -> None:
    command = ["train", *settings, *chosen, "runtime.precision=bf16", "training.valid_every=10"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for outputs, steps in ((whole, 20), (parts, 10), (parts, 20)):
        assert " bf16" in succeed([*command, f"paths.outputs={outputs}", f"training.steps={steps}"])
    assert losses(parts) == losses(whole)
    assert losses(whole)[-1][1] < losses(whole)[0][1] - 0.3
    assert [line["loss"] for line in events(parts, "valid")] == [line["loss"] for line in events(whole, "valid")]
    expected, found = weights(whole, 20), weights(parts, 20)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("shard", ["none", "weights"])
def test_two_processes_train_the_same_weights_as_one_and_one_goes_on(
    settings: list[str], tmp_path: Path, shard: str
) -> None:
    comparable = [
        *settings,
        "model.dropout=0",
        "training.adam_eps=1e-5",
        "training.steps=20",
        "training.valid_every=10",
    ]
    alone, pair = tmp_path / "alone", tmp_path / "pair"
    succeed(["train", *comparable, f"paths.outputs={alone}"])
    command = ["train", *comparable, f"paths.outputs={pair}"]
    several_micro_batches = ["training.device_tokens=100", "training.steps=10"]
    done = run_together([*command, *several_micro_batches, f"runtime.shard={shard}"], processes=2)
    assert done.returncode == 0, done.stderr
    assert "going on from step 10" in succeed(command)
    for first, second in zip(losses(alone), losses(pair), strict=True):
        assert second == pytest.approx(first, rel=1e-4)
    valid = [[line["loss"] for line in events(outputs, "valid")] for outputs in (alone, pair)]
    assert valid[1] == pytest.approx(valid[0], rel=1e-4)
    assert all(line["bleu"] >= 0 for line in events(pair, "valid"))
    expected, found = weights(alone, 20), weights(pair, 20)
    assert list(found) == list(expected)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4)


def test_patience_ends_the_run(settings: list[str], tmp_path: Path) -> None:
    command = ["train", *settings, f"paths.outputs={tmp_path}", "training.valid_every=1", "training.valid_sentences=0"]
    patient = [*command, "training.learning_rate=1e-12", "training.patience=3", "name=a"]
    assert "stopped early at step" in succeed(patient)
    assert "training.patience above 3" in succeed(patient)


def test_spent_training_budget_ends_the_run(settings: list[str], tmp_path: Path) -> None:
    command = ["train", *settings, "training.steps=4", f"paths.outputs={tmp_path}"]
    done = call([*command, "training.max_training_minutes=1e-6"])
    assert "stopped at step 1 of 4: the run has trained for training.max_training_minutes=1e-06" in done.stdout
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert warning.startswith("warning: training.warmup_steps=10 is above training.steps=4: ")
    again = succeed([*command, "training.max_training_minutes=1e-6"])
    assert "is finished: it is at step 1 of 4" in again
    assert "set training.max_training_minutes above " in again
    succeed(command)
    assert [step for step, *_ in losses(tmp_path)] == [1, 2, 3, 4]
