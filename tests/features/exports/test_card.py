"""The model card has a header that programs read, the facts of the model, and no private paths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.schema import Config, DataConfig, DecodingConfig
from nmt.features.exports.card import CardFacts, card
from nmt.features.exports.record import ExportRecord, VerificationRecord
from nmt.features.exports.registry import EXPORTERS
from nmt.runs.checkpoint_record import CheckpointRecord


def facts(data: DataConfig, **changes: Any) -> CardFacts:
    record = ExportRecord(
        nmt="1", target="safetensors", quantization="float32", languages=("en", "de"), positions=9,
        checkpoint=CheckpointRecord("averaged", 7, "0"), verified=VerificationRecord(4, 4, 0.0, None, "4 of 4"),
    )  # fmt: skip
    made = CardFacts(
        exporter=EXPORTERS["safetensors"], trained=replace(Config(), data=data), vocabularies=(60, 60), record=record,
        filters=[], evaluations=[], decoding=DecodingConfig(), size="0.1 MB (model.safetensors 0.1 MB)", licence="",
    )  # fmt: skip
    return replace(made, **changes)


def header(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    read = yaml.safe_load(front)
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize("source", ["no", "on", "y", "en", "1e3"])
def test_language_codes_that_yaml_would_misread_are_quoted(source: str) -> None:
    made = card(facts(DataConfig(source_lang=source, target_lang="de"), licence="no: licence #1"))
    assert header(made)["language"] == [source, "de"]
    assert header(made)["license"] == "no: licence #1"


def test_the_header_names_a_hub_dataset() -> None:
    made = card(facts(DataConfig()))
    assert header(made)["datasets"] == ["wmt/wmt14"]
    assert "- wmt14_en_de: wmt/wmt14 (de-en)" in made


def test_local_folders_are_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    for folder in (str(tmp_path / "private"), "owner/name", "../raw/wmt14", "~/wmt14"):
        made = card(facts(DataConfig(hub_dataset=folder)))
        assert "datasets" not in header(made)
        assert folder not in made


def test_local_files_are_published_without_their_folders() -> None:
    made = card(facts(DataConfig(source="files", train=["/home/me/secret/train.en", "../mine/train.de"])))
    assert "the files train.en, train.de" in made
    assert "secret" not in made
    assert "mine" not in made
