"""Several features at the same time: runs are resumed exactly, and are the same on two processes."""

from pathlib import Path

import torch

from tests.integration.test_training import events, losses, weights
from tests.integration.toy import succeed

EVERYTHING = [
    *(
        "training.optimizer=muon",
        "training.weight_decay=0.01",
        "model.layers=2",
        "model.attention_dropout=0.1",
        "model.activation_dropout=0.1",
    ),
    *("training.valid_every=5", "training.save_every=5"),
    "noise.bpe_dropout=0.2",
]


def test_a_run_with_everything_resumes_exactly(settings: list[str], tmp_path: Path) -> None:
    for outputs, ends in (("whole", [10]), ("parts", [5, 10])):
        for steps in ends:
            chosen = [*EVERYTHING, f"training.steps={steps}", f"paths.outputs={tmp_path / outputs}"]
            succeed(["train", *settings, *chosen])
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert losses(parts) == losses(whole)
    assert [line["loss"] for line in events(parts, "valid")] == [line["loss"] for line in events(whole, "valid")]
    for name, weight in weights(whole, 10).items():
        assert torch.equal(weights(parts, 10)[name], weight), name
