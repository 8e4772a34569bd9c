"""`nmt average` chooses by the development set, compared with what `nmt eval` finds on the same text."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load
from nmt.runs.checkpoints import Checkpoints
from tests.integration.toy import succeed

FIGURES = re.compile(r"(the last checkpoint|the last \d|the best \d) has BLEU ([0-9.]+)")


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """Return the outputs of a run whose last checkpoint, at step 50, is noise."""
    shutil.copytree(whole / "toy", tmp_path / "toy", symlinks=True)
    save(whole, tmp_path, 50, noise=1.0)
    return tmp_path


def save(whole: Path, outputs: Path, step: int, noise: float, certainty: float = 1.0) -> None:
    """Save the last checkpoint again, with noise in its weights, and with its logits multiplied by `certainty`."""
    last = load(whole / "toy" / "checkpoints" / "step-00000040")
    torch.manual_seed(1)
    weights = {name: weight + noise * torch.randn_like(weight) for name, weight in last.weights.items()}
    for name in ("weight", "bias"):
        weights[f"decoder.0.feed_forward_residual.norm.{name}"] *= certainty
    Checkpoints(outputs / "toy").save(
        Checkpoint(
            meta=CheckpointMeta(step=step),
            weights=weights,
            trainer={},
            tokenizer_files=last.tokenizer_files,
            config_text=last.config_text,
        )
    )


def average(settings: list[str], outputs: Path, *more: str) -> str:
    return succeed(["average", *settings, "runtime.precision=fp32", f"paths.outputs={outputs}", *more])


@pytest.mark.parametrize(
    ("deleted", "noise", "certainty", "better"),
    [(40, 0.0, 8.0, "the last checkpoint"), (30, 1.0, 1.0, "the best 1")],
    ids=["certain", "noisy"],
)
def test_the_average_that_translates_the_development_set_best_is_written(
    settings: list[str], whole: Path, run: Path, deleted: int, noise: float, certainty: float, better: str
) -> None:
    for step in (deleted, 50):
        shutil.rmtree(run / "toy" / "checkpoints" / f"step-{step:08}")
    save(whole, run, 50, noise, certainty)
    words = ["training.keep_last=2", "training.keep_best=1", "decoding.beam=1"]
    said = average(settings, run, "averaging.last=0", *words)
    bleu = {name: float(score) for name, score in FIGURES.findall(said)}
    assert bleu.keys() == {"the last checkpoint", "the last 2", "the best 1"}
    for name, checkpoint in (("the last checkpoint", "last"), ("the best 1", "best")):
        assert evaluated(settings, run, checkpoint) == pytest.approx(bleu[name], abs=0.005)
    chosen = max(bleu, key=bleu.__getitem__)
    assert f"chose {chosen}: " in said
    assert bleu[chosen] >= bleu[better]
    assert evaluated(settings, run, "averaged") == pytest.approx(bleu[chosen], abs=0.005)


def evaluated(settings: list[str], outputs: Path, checkpoint: str) -> float:
    """Return the BLEU of the development set."""
    words = [f"paths.outputs={outputs}", f"checkpoint={checkpoint}", "evaluation.splits=[valid]", "decoding.beam=1"]
    said = succeed(["eval", *settings, *words])
    (file,) = re.findall(r"\S+valid\.json", said)
    return float(json.loads(Path(file).read_text())["bleu"]["score"])
