"""`nmt average` chooses by the development set, compared with what `nmt score` and `nmt eval` find on the same text."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch

from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import Checkpoints, load, resolve
from tests.integration.toy import call, refuse, succeed

LINE = re.compile(r"  smoothed loss ([0-9.]+)  nll ([0-9.]+)  ([^:]+): steps? ([0-9, ]+)")
BLEU = re.compile(r"  BLEU ([0-9.]+) of 40 sentences  (.+)")


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
        step,
        weights=weights,
        trainer={},
        tokenizer_files=last.tokenizer_files,
        config_text=last.config_text,
        valid={},
    )


def average(settings: list[str], outputs: Path, *more: str) -> str:
    return succeed(["average", *settings, "runtime.precision=fp32", f"paths.outputs={outputs}", *more])


def scored(settings: list[str], corpus: Path, outputs: Path) -> float:
    """Return the averaged checkpoint's negative log-likelihood per token of the development text."""
    sources, targets = ((corpus / f"valid.{language}").read_text().splitlines() for language in ("en", "de"))
    text = outputs / "pairs.tsv"
    text.write_text("".join(f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True)))
    succeed(["score", *settings, "runtime.precision=fp32", f"paths.outputs={outputs}", f"input={text}",
                 f"output={outputs}/scored.tsv"])  # fmt: skip
    rows = [line.split("\t") for line in (outputs / "scored.tsv").read_text().splitlines()]
    return -sum(float(row[0]) for row in rows) / sum(int(row[1]) for row in rows)


def test_average_with_the_lowest_development_loss_is_written(
    settings: list[str], corpus: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = average(settings, run, "averaging.last=0", "training.keep_best=2")
    found = {name: (float(loss), float(nll), steps.split(", ")) for loss, nll, name, steps in LINE.findall(said)}
    assert found.keys() == {
        "last", "average of the last 2", "average of the last 3", "average of the last 4", "average of the last 5",
        "best", "average of the best 2",
    }  # fmt: skip
    loss, nll, steps = min(found.values())
    assert found[said.partition("chosen by the lowest smoothed loss: ")[2].splitlines()[0]] == (loss, nll, steps)
    assert "50" not in steps
    meta = read_meta(run / "toy" / "checkpoints" / "averaged")
    assert sorted(meta.averaged_from) == sorted(f"step-{int(step):08}" for step in steps)
    resolve(run / "toy", "averaged")
    assert capsys.readouterr().err == "", "the same command would write the same average"
    assert scored(settings, corpus, run) == pytest.approx(nll, abs=2e-4)
    for name in ("average of the last 3", "best"):
        _, nll, steps = found[name]
        average(settings, run, f"averaging.checkpoints=[{','.join(steps)}]")
        assert scored(settings, corpus, run) == pytest.approx(nll, rel=1e-3)


@pytest.mark.parametrize(
    ("deleted", "noise", "certainty", "chosen"),
    [(40, 0.0, 8.0, "last"), (30, 1.0, 1.0, "best")],
    ids=["certain", "noisy"],
)
def test_higher_bleu_chooses_between_the_lowest_loss_and_the_last_checkpoint(
    settings: list[str], whole: Path, run: Path, deleted: int, noise: float, certainty: float, chosen: str
) -> None:
    for step in (deleted, 50):
        shutil.rmtree(run / "toy" / "checkpoints" / f"step-{step:08}")
    save(whole, run, 50, noise, certainty)
    said = average(settings, run, "averaging.last=0", "training.keep_last=1", "decoding.beam=1")
    losses = {name: float(loss) for loss, _, name, _ in LINE.findall(said)}
    bleu = {name: float(score) for score, name in BLEU.findall(said)}
    assert bleu.keys() == losses.keys() == {"last", "best"}
    assert losses["best"] < losses["last"]
    assert f"chosen by the higher BLEU: {chosen}\n" in said
    for name, score in bleu.items():
        assert evaluated(settings, run, name) == pytest.approx(score, abs=0.005)
    assert max(bleu, key=bleu.__getitem__) == chosen
    steps = read_meta(run / "toy" / "checkpoints" / "averaged").averaged_from
    assert steps == [(run / "toy" / "checkpoints" / chosen).resolve().name]


def evaluated(settings: list[str], outputs: Path, checkpoint: str) -> float:
    """Return the BLEU of the development set."""
    words = [f"paths.outputs={outputs}", f"checkpoint={checkpoint}", "evaluation.splits=[valid]", "decoding.beam=1"]
    said = succeed(["eval", *settings, *words])
    (file,) = re.findall(r"\S+valid\.json", said)
    return float(json.loads(Path(file).read_text())["bleu"]["score"])


@pytest.mark.parametrize("given", ["averaging.last=2", "averaging.checkpoints=[40,50]"])
def test_requested_checkpoints_are_averaged_regardless_of_their_loss(
    settings: list[str], run: Path, given: str
) -> None:
    said = average(settings, run, given)
    assert "nll" not in said
    averaged = read_meta(run / "toy" / "checkpoints" / "averaged").averaged_from
    assert averaged == ["step-00000040", "step-00000050"]


def test_run_without_a_finite_loss_is_refused(settings: list[str], whole: Path, tmp_path: Path) -> None:
    save(whole, tmp_path, 50, noise=math.nan)
    done = call(["average", *settings, f"paths.outputs={tmp_path}", "averaging.last=0"])
    assert done.returncode == 2
    assert "has a finite loss on the development set" in done.stderr
    assert not (tmp_path / "toy" / "checkpoints" / "averaged").exists()


def test_development_text_of_another_tokenizer_is_refused(settings: list[str], whole: Path, tmp_path: Path) -> None:
    other = [word for word in settings if not word.startswith("paths.data=")]
    other += [f"paths.data={tmp_path}/data", "tokenizer.vocab_size=110"]
    succeed(["data", *other])
    error = refuse(["average", *other, f"paths.outputs={whole}", "averaging.last=0"])
    assert "so its loss there is meaningless" in error


def test_interim_checkpoint_of_an_interrupted_run_is_not_averaged(settings: list[str], tmp_path: Path) -> None:
    command = [*settings, f"paths.outputs={tmp_path}", "training.save_every=1", "training.keep_last=3"]
    succeed(["train", *command, "training.steps=3", "training.valid_every=100"])
    more = ["training.save_every=100", "training.steps=40", "training.max_minutes=1e-6", "training.valid_every=100"]
    succeed(["train", *command, *more])
    assert (tmp_path / "toy" / "checkpoints" / "last").resolve().name == "step-00000004"
    average(command, tmp_path, "averaging.last=3")
    averaged = read_meta(tmp_path / "toy" / "checkpoints" / "averaged").averaged_from
    assert averaged == ["step-00000001", "step-00000002", "step-00000003"]
