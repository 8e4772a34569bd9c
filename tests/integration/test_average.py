"""`nmt average` chooses by the development set, compared with what `nmt eval` finds on the same text."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.commands import average
from nmt.compute.machine import Machine
from nmt.model.backends.chosen import backend, choose
from nmt.runs.checkpoint import CheckpointMeta, load
from nmt.runs.checkpoints import Checkpoints
from tests.integration.toy import succeed

FIGURES = re.compile(r"(the last checkpoint|the last \d|the best \d) has BLEU ([0-9.]+)")


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """Return the outputs of a run whose last checkpoint, at step 50, is noise, and whose last but one is the best."""
    shutil.copytree(whole / "toy", tmp_path / "toy", symlinks=True)
    last = load(whole / "toy" / "checkpoints" / "step-00000040")
    torch.manual_seed(1)
    weights = {name: weight + torch.randn_like(weight) for name, weight in last.weights.items()}
    Checkpoints(tmp_path / "toy").save(replace(last, meta=CheckpointMeta(step=50), weights=weights, trainer={}))
    shutil.rmtree(tmp_path / "toy" / "checkpoints" / "step-00000030")
    return tmp_path


def test_the_average_that_translates_the_development_set_best_is_written(settings: list[str], run: Path) -> None:
    words = ["training.keep_last=2", "training.keep_best=1", "decoding.beam=1"]
    choose(Machine(torch.device("cpu"), torch.float32), kernels=False)
    said = succeed(["average", *settings, "averaging.last=0", f"paths.outputs={run}", *words])
    bleu = {name: float(score) for name, score in FIGURES.findall(said)}
    assert bleu.keys() == {"the last checkpoint", "the last 2", "the best 1"}
    used = backend().name
    for name, checkpoint in (("the last checkpoint", "last"), ("the best 1", "best")):
        assert evaluated(settings, run, checkpoint) == pytest.approx(bleu[name], abs=0.005)
    chosen = max(bleu, key=bleu.__getitem__)
    assert f"chose {chosen}: " in said
    assert evaluated(settings, run, "averaged") == pytest.approx(bleu[chosen], abs=0.005)
    assert used == backend().name  # what `nmt eval` translates with


def test_training_may_delete_checkpoints_that_were_compared(
    settings: list[str], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [1.0, 3.0, 2.0]

    def score(*_: object) -> float:
        if len(figures) == 1:
            shutil.rmtree(run / "toy" / "checkpoints" / "step-00000040")
        return figures.pop(0)

    monkeypatch.setattr(average, "decoded_bleu", score)
    words = ["averaging.last=0", "training.keep_last=2", "training.keep_best=1"]
    assert "chose the last 2: " in succeed(["average", *settings, f"paths.outputs={run}", *words])


def evaluated(settings: list[str], outputs: Path, checkpoint: str) -> float:
    """Return the BLEU of the development set."""
    words = [f"paths.outputs={outputs}", f"checkpoint={checkpoint}", "evaluation.splits=[valid]", "decoding.beam=1"]
    said = succeed(["eval", *settings, *words])
    (file,) = re.findall(r"\S+valid\.json", said)
    return float(json.loads(Path(file).read_text())["bleu"]["score"])
