"""COMET: a small model of the same layout, scored as the library's own command does; skipped without the library."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.config.decoding import EvaluationConfig
from nmt.errors import UserError
from nmt.evaluation.metrics import Score, score_text

SOURCES = ["the small cat sees a dog", "a dog", "it is a very small dog"]
REFERENCES = ["die kleine Katze sieht einen Hund", "ein Hund", "es ist ein sehr kleiner Hund"]
HYPOTHESES = ["die Katze sieht Hunde", "ein Hund", "es ist klein"]
CPU = torch.device("cpu")

needs_library = pytest.mark.skipif(importlib.util.find_spec("comet") is None, reason="needs the extra comet")


def score_with(model: str) -> Score:
    """Score the hypotheses by this model."""
    settings = EvaluationConfig(comet=model)
    return score_text(HYPOTHESES, [REFERENCES], "de", SOURCES, settings)["comet"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model with random weights in the layout of COMET's: hparams.yaml and checkpoints/model.ckpt."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast

    folder = tmp_path_factory.mktemp("comet")
    letters = sorted(set("".join(SOURCES + REFERENCES)) - {" "})
    pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    tokenizer = Tokenizer(models.Unigram([*pieces, ("▁", -1.0), *((letter, -2.0) for letter in letters)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    XLMRobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder / "encoder")
    XLMRobertaConfig(
        vocab_size=80, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    ).save_pretrained(folder / "encoder")  # fmt: skip
    settings: dict[str, Any] = {
        "pretrained_model": str(folder / "encoder"), "encoder_model": "XLM-RoBERTa", "hidden_sizes": [16, 8],
        "layer_norm": False, "load_pretrained_weights": False,
    }  # fmt: skip
    return make_model(folder, "regression_metric", settings)


def make_model(folder: Path, kind: str, settings: dict[str, Any]) -> Path:
    """Write a model with random weights that reads sentences by the encoder of these settings."""
    from comet.models import str2model

    torch.manual_seed(1)
    made = str2model[kind](**settings, local_files_only=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump({"class_identifier": kind, **settings}))
    (folder / "checkpoints").mkdir()
    content = {"state_dict": made.state_dict(), "hyper_parameters": settings, "pytorch-lightning_version": "2.0.0"}
    torch.save(content, folder / "checkpoints" / "model.ckpt")
    return folder


@needs_library
def test_comet_is_close_to_the_librarys_own_command(model: Path, tmp_path: Path) -> None:
    files = []
    for name, lines in (("-s", SOURCES), ("-t", HYPOTHESES), ("-r", REFERENCES)):
        path = tmp_path / f"lines{name}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files += [name, str(path)]
    program = "from comet.cli.score import score_command; score_command()"
    words = ["--model", str(model / "checkpoints" / "model.ckpt"), "--gpus", "0", "--num_workers", "0", "--quiet"]
    words += ["--disable_cache", "--to_json", str(tmp_path / "scores.json")]
    subprocess.run([sys.executable, "-c", program, *files, *words], check=True, capture_output=True)
    ((_, rows),) = json.loads((tmp_path / "scores.json").read_text()).items()
    found = score_with(str(model))
    assert found.score == pytest.approx(100 * sum(row["COMET"] for row in rows) / len(rows), rel=2e-3)
    assert found.signature.startswith(f"nrefs:1|model:{model.name}|weights:")


@needs_library
def test_a_damaged_model_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.ckpt").write_bytes(b"no weights")
    (tmp_path / "hparams.yaml").write_text((model / "hparams.yaml").read_text())
    with pytest.raises(UserError, match="cannot be loaded as a model of COMET"):
        score_with(str(tmp_path))


def test_a_model_that_is_not_there_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="comet=nobody/nothing is neither a folder nor a model"):
        score_with("nobody/nothing")


@pytest.mark.skipif(importlib.util.find_spec("comet") is not None, reason="unbabel-comet is installed")
def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs the package unbabel-comet"):
        score_with(str(tmp_path))
