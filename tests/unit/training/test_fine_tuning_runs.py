"""A run that begins from another model has its weights, keeps frozen ones, and resumes exactly without that model."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.config.saved import from_yaml
from nmt.runs.layout import RunLayout
from nmt.text.tokenizer import Tokenizer
from tests.integration.toy import refuse, succeed


@pytest.fixture
def outputs(whole: Path, tmp_path: Path) -> Path:
    """Return a folder with the run toy to begin from."""
    shutil.copytree(whole / "toy", tmp_path / "outputs" / "toy", symlinks=True)
    return tmp_path / "outputs"


@pytest.fixture
def tuning(settings: list[str], outputs: Path) -> list[str]:
    """Return overrides for a run that begins from toy, on a corpus folder of its own."""
    kept = [each for each in settings if not each.startswith(("name=", "data.corpus="))]
    return [*kept, "name=tuned", "data.corpus=tuned", f"paths.outputs={outputs}", "training.init_from=toy"]


def weights(run_folder: Path) -> dict[str, torch.Tensor]:
    return load_file(RunLayout(run_folder).checkpoints / "last" / "model.safetensors")


def first_loss(run_folder: Path) -> float:
    events = map(json.loads, RunLayout(run_folder).metrics.read_text(encoding="utf-8").splitlines())
    return next(float(event["loss"]) for event in events if event["event"] == "train")


def test_a_run_begins_with_the_weights_and_the_tokenizer_of_another(tuning: list[str], outputs: Path) -> None:
    tuning = [*tuning, "data.corpus=begun", "training.freeze=[encoder,embeddings]", "training.steps=20"]
    assert "tokenizer kept from training.init_from" in succeed(["data", *tuning])
    said = succeed(["train", *tuning])
    assert f"beginning from {outputs / 'toy' / 'checkpoints' / 'step-'}" in said
    tuned, base = outputs / "tuned", outputs / "toy"
    assert first_loss(tuned) < first_loss(base) - 1
    last, before = (RunLayout(run).checkpoints / "last" for run in (tuned, base))
    assert (last / "tokenizer.model").read_bytes() == (before / "tokenizer.model").read_bytes()
    origin = json.loads((last / "meta.json").read_text(encoding="utf-8"))["origin"]
    begun_from = json.loads((Path(origin["path"]) / "meta.json").read_text(encoding="utf-8"))
    assert (origin["name"], origin["step"]) == ("toy", begun_from["step"])
    assert origin["sha256"] == begun_from["files"]["model.safetensors"]
    succeed(["average", *tuning])
    averaged = RunLayout(tuned).averaged
    assert json.loads((averaged / "meta.json").read_text(encoding="utf-8"))["origin"] == origin
    kept = load_file(Path(origin["path"]) / "model.safetensors")
    for folder in (last, averaged):
        after = load_file(folder / "model.safetensors")
        for name, weight in kept.items():
            assert torch.equal(weight, after[name]) == name.startswith(("encoder.", "vectors.")), name


def test_init_from_alone_takes_the_shape_of_the_old_model(tuning: list[str], outputs: Path) -> None:
    alone = [each for each in tuning if not each.startswith("model.")]
    succeed(["data", *alone])
    assert "is another model: set model.d_model=32, or" in refuse(["train", *alone, "model.d_model=64"])
    succeed(["train", *alone, "training.steps=2", "model.dropout=0.2"])
    model = from_yaml(RunLayout(outputs / "tuned").settings.read_text(encoding="utf-8")).model
    assert (model.layers, model.d_model, model.d_ff, model.dropout) == (1, 32, 64, 0.2)


def test_a_resumed_run_does_not_need_its_origin(tuning: list[str], outputs: Path) -> None:
    alone = [each for each in tuning if not each.startswith("model.")]
    succeed(["data", *alone])
    alone.append("training.steps=20")
    succeed(["train", *alone])
    expected = weights(outputs / "tuned")
    shutil.rmtree(outputs / "tuned")
    succeed(["train", *alone, "training.steps=10"])
    shutil.rmtree(outputs / "toy")  # the run itself has the shape now
    assert "tokenizer: " not in succeed(["data", *alone])
    succeed(["train", *alone])
    found = weights(outputs / "tuned")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("vocabulary", ["new", "extend"])
def test_another_domain_may_have_another_vocabulary(
    tuning: list[str], outputs: Path, corpus: Path, tmp_path: Path, vocabulary: str
) -> None:
    files = [tmp_path / f"train.{side}" for side in ("en", "de")]
    for file in files:
        text = (corpus / file.name).read_text(encoding="utf-8")
        file.write_text(text.replace("e", "ë").replace("st", "ßt"), encoding="utf-8")
    chosen = [*tuning, f"data.train=[{files[0]},{files[1]}]", "tokenizer.vocab_size=150"]
    chosen += [f"training.init_vocabulary={vocabulary}", "training.steps=2"]
    succeed(["data", *chosen])
    assert "of 150 word pieces" in succeed(["train", *chosen])
    old, new = (Tokenizer.load(RunLayout(outputs / name).checkpoints / "last") for name in ("toy", "tuned"))
    assert (new.vocabularies[0][: old.source_size] == old.vocabularies[0]) == (vocabulary == "extend")
    assert len(weights(outputs / "tuned")["vectors.shared"]) == new.source_size == 150


def test_what_does_not_fit_is_refused_by_name(tuning: list[str], settings: list[str]) -> None:
    succeed(["data", *tuning])
    for changes, words in {
        "training.init_from=toi": "training.init_from=toi is neither a run in .* nor a checkpoint: did you mean",
        "name=toy": "this run cannot be resumed with other settings: .* training.init_from was .* and is now toy",
        "training.freeze=[encode]": "training.freeze: encode is no part and no parameter of this model: did",
        "training.freeze=['*']": "leaves nothing to train",
    }.items():
        error = refuse(["train", *tuning, changes])
        assert re.search(words, error), error
    small = [*settings, "name=small", "data.corpus=small", "tokenizer.vocab_size=100", "training.steps=1"]
    outputs = next(each for each in tuning if each.startswith("paths.outputs="))
    succeed(["data", *small])
    succeed(["train", *small, outputs])
    error = refuse(["train", *tuning, "training.init_from=small", "name=other"])
    assert "is not prepared, or from other files than there are now (tokenizer): run `make data`" in error
