"""COMET: a small model of the same layout, scored as the library's own command does; skipped without the library."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from nmt.compute.machine import prepare_machine
from nmt.config.decoding import DecodingConfig, EvaluationConfig
from nmt.decoding.load import load_engine
from nmt.decoding.translation import Candidate
from nmt.errors import ConfigError, UserError
from nmt.evaluation.comet import by_comet
from nmt.evaluation.metrics import Translated, score_text
from tests.unit.tiny_run import tiny_config

SOURCES = ["the small cat sees a dog", "a dog", "it is a very small dog"]
REFERENCES = ["die kleine Katze sieht einen Hund", "ein Hund", "es ist ein sehr kleiner Hund"]
HYPOTHESES = ["die Katze sieht Hunde", "ein Hund", "es ist klein"]
CPU = torch.device("cpu")

needs_library = pytest.mark.skipif(importlib.util.find_spec("comet") is None, reason="needs the extra comet")


def translated(model: str) -> Translated:
    """The hypotheses, to be scored by this model."""
    settings = EvaluationConfig(comet=model)
    return Translated(HYPOTHESES, [REFERENCES], "de", SOURCES, settings)


def searching(model: str) -> DecodingConfig:
    """Return the settings of a search by the utility of this model."""
    return DecodingConfig(strategy="mbr", utility="comet", comet=model)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model with random weights in the layout of COMET's: hparams.yaml and checkpoints/model.ckpt."""
    from comet.models import str2model
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
    torch.manual_seed(1)
    made = str2model["regression_metric"](**settings, local_files_only=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump({"class_identifier": "regression_metric", **settings}))
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
    found = score_text(translated(str(model)))["comet"]
    assert found.score == pytest.approx(100 * sum(row["COMET"] for row in rows) / len(rows), rel=2e-3)
    assert found.signature.startswith(f"nrefs:1|model:{model.name}|weights:")


@needs_library
def test_the_utility_compares_all_pairs_as_the_library_does(model: Path) -> None:
    from comet import load_from_checkpoint

    translations = [*HYPOTHESES, *REFERENCES]
    pairs = [(one, other) for one in translations for other in translations]
    data = [{"src": SOURCES[0], "mt": one, "ref": other} for one, other in pairs]
    theirs = load_from_checkpoint(str(model / "checkpoints" / "model.ckpt")).predict(data, gpus=0, num_workers=0)
    utility = by_comet(searching(str(model)), CPU)
    found = utility(translations, SOURCES[0])
    expected = 100 * np.array(theirs.scores).reshape(len(translations), -1)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected) > 1e-2
    assert not np.allclose(expected, utility(translations, SOURCES[1]), atol=1e-3)


@needs_library
def test_minimum_bayes_risk_by_comet_chooses_the_sample_with_the_best_mean(model: Path, tmp_path: Path) -> None:
    from comet import load_from_checkpoint

    config = tiny_config(tmp_path)
    machine, lines = prepare_machine(config.runtime), ["the small cat sees", "a dog"]

    def translate(**settings: str | int | float) -> list[list[Candidate]]:
        decoding = replace(config.decoding, **settings)  # type: ignore[arg-type]
        engine = load_engine(replace(config, decoding=decoding), machine).engine
        return [each.candidates for each in engine.translate(lines)]

    drawn = translate(strategy="sample", nbest=6, temperature=0.7)
    chosen = translate(strategy="mbr", candidates=6, temperature=0.7, utility="comet", comet=str(model))
    library = load_from_checkpoint(str(model / "checkpoints" / "model.ckpt"))
    for source, candidates, (best,) in zip(lines, drawn, chosen, strict=True):
        texts = [each.text for each in candidates]
        data = [{"src": source, "mt": one, "ref": other} for one in texts for other in texts]
        scores = np.array(library.predict(data, gpus=0, num_workers=0).scores).reshape(len(texts), -1).mean(1)
        assert best.score == pytest.approx(100 * scores.max(), abs=1e-3)
        assert 100 * scores[texts.index(best.text)] == pytest.approx(best.score, abs=1e-3)


@needs_library
def test_a_damaged_model_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.ckpt").write_bytes(b"no weights")
    (tmp_path / "hparams.yaml").write_text((model / "hparams.yaml").read_text())
    with pytest.raises(UserError, match="cannot be loaded as a model of COMET"):
        score_text(translated(str(tmp_path)))


def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    named = {str(tmp_path): "this is no model of COMET", "nobody/nothing": "neither a folder nor a model"}
    for name, words in named.items():
        with pytest.raises(UserError, match=words):
            score_text(translated(name))
        with pytest.raises(UserError, match=f"^decoding.comet={name}.*{words}"):
            by_comet(searching(name), CPU)
    with pytest.raises(ConfigError, match=r"decoding\.utility=comet needs a model"):
        DecodingConfig(utility="comet")


@pytest.mark.skipif(importlib.util.find_spec("comet") is not None, reason="unbabel-comet is installed")
def test_a_missing_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.ckpt").touch()
    (tmp_path / "hparams.yaml").touch()
    with pytest.raises(UserError, match="needs the package unbabel-comet"):
        score_text(translated(str(tmp_path)))
