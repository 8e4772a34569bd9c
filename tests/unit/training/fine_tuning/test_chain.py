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
from tests.integration.toy import call, refuse, succeed
from tests.quick_processes import run_together


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
    tuning = [*tuning, "data.corpus=begun"]  # the folder of the other tests may be prepared already
    said = succeed(["data", *tuning])
    assert "tokenizer kept from training.init_from" in said
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
    assert json.loads(RunLayout(tuned).environment.read_text(encoding="utf-8"))["origin"] == origin
    succeed(["average", *tuning])
    averaged = json.loads((RunLayout(tuned).averaged / "meta.json").read_text(encoding="utf-8"))
    assert averaged["origin"] == origin


def test_init_from_alone_takes_the_shape_of_the_old_model(tuning: list[str], outputs: Path) -> None:
    alone = [each for each in tuning if not each.startswith("model.")]
    succeed(["data", *alone])
    said = succeed(["train", *alone, "training.steps=2", "model.dropout=0.2"])
    assert " weights, 0 left out" in said
    settings = from_yaml(RunLayout(outputs / "tuned").settings.read_text(encoding="utf-8"))
    assert (settings.model.layers, settings.model.d_model, settings.model.d_ff, settings.model.dropout) == (
        1,
        32,
        64,
        0.2,
    )
    shutil.rmtree(outputs / "toy")  # the run itself has the shape now
    resumed = succeed(["train", *alone, "training.steps=3", "model.dropout=0.2"])
    assert "step 3" in resumed
    assert first_loss(outputs / "tuned") > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["model.d_model=64"], r"vectors.shared is \[120, 32\], not \[120, 64\]"),
        (["model=tiny"], r"set .*model\.d_model=32"),
    ],
)
def test_a_shape_that_the_user_gives_is_compared(tuning: list[str], changes: list[str], words: str) -> None:
    alone = [each for each in tuning if not each.startswith("model.")]
    succeed(["data", *alone])
    assert re.search(words, refuse(["train", *alone, *changes]))


def test_a_run_can_begin_on_the_corpus_of_its_origin(settings: list[str], outputs: Path, whole: Path) -> None:
    tuning = [*settings, "name=tuned", f"paths.outputs={outputs}", "training.init_from=toy", "training.steps=1"]
    assert " weights, 0 left out" in succeed(["train", *tuning])
    assert "tokenizer: " not in succeed(["data", *tuning])
    assert "is finished" in succeed(["train", *settings, f"paths.outputs={outputs}"])


def test_a_resumed_run_does_not_need_its_origin(tuning: list[str], outputs: Path) -> None:
    succeed(["data", *tuning])
    succeed(["train", *tuning])
    expected = weights(outputs / "tuned")
    shutil.rmtree(outputs / "tuned")
    succeed(["train", *tuning, "training.steps=20"])
    shutil.rmtree(outputs / "toy")
    assert "tokenizer: " not in succeed(["data", *tuning])
    succeed(["train", *tuning])
    found = weights(outputs / "tuned")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    meta = json.loads((RunLayout(outputs / "tuned").checkpoints / "last" / "meta.json").read_text(encoding="utf-8"))
    assert meta["origin"]["name"] == "toy"


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_frozen_weights_stay_equal_bit_by_bit(tuning: list[str], outputs: Path, processes: int) -> None:
    succeed(["data", *tuning])
    chosen = [*tuning, "training.freeze=[encoder,embeddings]", "training.steps=12", "training.save_every=6"]
    for steps in (6, 12):
        command = ["train", *chosen, f"training.steps={steps}"]
        done = run_together(command, processes) if processes > 1 else call(command)
        assert done.returncode == 0, done.stderr
    succeed(["average", *chosen])
    last = RunLayout(outputs / "tuned").checkpoints / "last"
    origin = json.loads((last / "meta.json").read_text(encoding="utf-8"))["origin"]
    before = load_file(Path(origin["path"]) / "model.safetensors")
    for folder in (last, RunLayout(outputs / "tuned").averaged):
        after = load_file(folder / "model.safetensors")
        for name, weight in before.items():
            assert torch.equal(weight, after[name]) == name.startswith(("encoder.", "vectors.")), name
    saved = torch.load(last / "trainer.pt", weights_only=True)["trainer"]["optimizer"]["state"]
    assert len(saved) == sum(not name.startswith(("encoder.", "vectors.")) for name in before)


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


def test_an_extended_vocabulary_does_not_need_its_origin_again(tuning: list[str], outputs: Path) -> None:
    chosen = [*tuning, "training.init_vocabulary=extend", "tokenizer.vocab_size=150"]
    succeed(["data", *chosen])
    (outputs / "toy").rename(outputs / "gone")
    assert "tokenizer: " not in succeed(["data", *chosen])
    assert "training.init_from=toy is neither a run" in refuse(["data", *chosen, "tokenizer.vocab_size=160"])
    assert "training.init_from=toy is neither a run" in refuse(["data", *chosen, "data.corpus=other"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["training.init_from=toi"], "training.init_from=toi is neither a run in .* nor a checkpoint: did you mean"),
        (["name=toy"], "this run cannot be resumed with other settings: .* training.init_from was .* and is now toy"),
        (["training.freeze=[encode]"], "training.freeze: encode is no part and no parameter of this model: did"),
        (["training.freeze=['*']"], "leaves nothing to train"),
        (["training.init_skip=[nothing.*]"], "training.init_skip: nothing.* is no weight of this model"),
        (["model.layers=2"], "encoder.1.attention.query_key_value.weight is missing; .* more: set model.layers=1"),
        (["model.d_ff=96"], r"encoder.0.feed_forward.inner.weight is \[64, 32\], not \[96, 32\]"),
        (["model.heads=4"], "model.heads is 4, not 2: set model.heads=2, or leave them out with training.init_skip"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(tuning: list[str], outputs: Path, changes: list[str], words: str) -> None:
    succeed(["data", *tuning])
    error = refuse(["train", *tuning, *changes])
    assert re.search(words, error), error


def test_what_does_not_fit_can_be_left_out(tuning: list[str], outputs: Path) -> None:
    succeed(["data", *tuning])
    skip = "training.init_skip=[encoder.1.*,decoder.1.*,model.activation]"
    said = succeed(["train", *tuning, "model.layers=2", "model.activation=gelu", skip, "training.steps=1"])
    assert "32 left out" in said


def test_data_of_another_tokenizer_is_refused(tuning: list[str], settings: list[str], outputs: Path) -> None:
    own = [each for each in tuning if not each.startswith("training.init_from=")]
    succeed(["data", *own, "tokenizer.vocab_size=100"])
    expected = "was prepared from other files (tokenizer) than there are now: run `make data`"
    assert expected in refuse(["train", *tuning])
    small = [*own, "name=small", "tokenizer.vocab_size=100", "training.steps=1"]
    succeed(["train", *small])
    succeed(["data", *tuning, "training.init_from=small"])
    assert expected in refuse(["train", *tuning])
