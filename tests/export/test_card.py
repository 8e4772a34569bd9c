"""The model card has a header that programs read, the facts of the model, and no private paths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.data import DataConfig
from nmt.config.registry import load
from nmt.config.tree import Config
from nmt.export.card import card
from nmt.export.record import ExportRecord
from nmt.runs.checkpoint import CheckpointRecord
from tests.export.models import trained
from tests.unit.small_models import make_model, make_tokenizer

RECORD = ExportRecord(
    nmt="1", target="ctranslate2", quantization="float32", languages=("en", "de"), positions=9,
    checkpoint=CheckpointRecord("averaged", 7, "0"), verified="4 of 4",
)  # fmt: skip
BACK = {"source_lang": "de", "target_lang": "fr", "train": ["b.de", "b.fr"], "tag": "<fr>"}
MIXTURE: dict[str, Any] = {"source": "files", "train": ["a.en", "a.de"], "tag": "<de>", "mixture": {"back": BACK}}


def written(tmp_path: Path, data: DataConfig, target: str = "ctranslate2") -> str:
    tokenizer = make_tokenizer()
    model = trained(tmp_path, tokenizer, make_model(tokenizer))
    settings = replace(Config(), data=data)
    return card(load("export.target", target), replace(model, settings=settings), RECORD, [])


def header(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    read = yaml.safe_load(front)
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize("source", ["no", "1e3"])
def test_language_codes_that_yaml_would_misread_are_quoted(tmp_path: Path, source: str) -> None:
    made = written(tmp_path, DataConfig(source_lang=source, target_lang="de"))
    assert header(made)["language"] == [source, "de"]


def test_the_header_names_a_hub_dataset(tmp_path: Path) -> None:
    made = written(tmp_path, DataConfig())
    assert header(made)["datasets"] == ["wmt/wmt14"]
    assert "wmt/wmt14 (de-en)" in made


@pytest.mark.parametrize(
    "data",
    [
        DataConfig(hub_dataset="/home/me/secret/wmt14"),
        DataConfig(hub_dataset="../secret/wmt14"),
        DataConfig(source="files", train=["/home/me/secret/train.en", "../secret/train.de"]),
    ],
    ids=str,
)
def test_local_folders_are_not_published(tmp_path: Path, data: DataConfig) -> None:
    made = written(tmp_path, data)
    assert "datasets" not in header(made)
    assert "secret" not in made


@pytest.mark.parametrize("target", ["ctranslate2", "huggingface"])
def test_each_corpus_of_a_mixture_is_described_and_the_example_begins_with_its_tag(tmp_path: Path, target: str) -> None:
    made = written(tmp_path, DataConfig(**MIXTURE), target)
    assert header(made)["language"] == ["en", "de", "fr"]
    assert "<de> A man sleeps." in made
    assert "- `<fr>`: de to fr\n" in made
    assert "- de to fr: files: b.de, b.fr\n" in made
