"""What an export says of its files and of the model's training, and what it keeps private."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.data import DataConfig
from nmt.config.registry import load
from nmt.errors import UserError
from nmt.export.record import ExportRecord, card
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import checksum, read_json, write_json
from tests.export.models import make_trained

RECORD = ExportRecord(
    nmt="1",
    target="ctranslate2",
    quantization="int8",
    languages=("en", "de"),
    positions=9,
    checkpoint=CheckpointRecord("averaged", 7, path="/home/somebody/outputs/run/checkpoints/averaged"),
    origin=CheckpointRecord("best", 5, path="../private/best"),
    verified="verified",
)
FILES = {"model.bin": "weights", "graphs/encoder.bin": "graph", "config.yaml": "seed: 1\n", "README.md": "A model."}
BACK = {"source_lang": "de", "target_lang": "fr", "train": ["b.de", "b.fr"], "tag": "<fr>"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    RECORD.write(tmp_path)
    return tmp_path


def test_it_is_read_as_it_was_written_without_folders_of_the_machine(folder: Path) -> None:
    (folder / "README.md").write_text("A model with a licence.", encoding="utf-8")
    assert ExportRecord.read(folder) == replace(
        RECORD,
        checkpoint=CheckpointRecord("averaged", 7, path="averaged"),
        origin=CheckpointRecord("best", 5, path="best"),
        sha256={name: checksum(folder / name) for name in FILES if name != "README.md"},
    )


def test_files_that_were_changed_or_lost_are_named(folder: Path) -> None:
    (folder / "graphs/encoder.bin").write_text("something else", encoding="utf-8")
    with pytest.raises(UserError, match=r"graphs/encoder.bin is damaged or was changed: copy the export again"):
        ExportRecord.read(folder)
    (folder / "graphs/encoder.bin").unlink()
    with pytest.raises(UserError, match=r"graphs/encoder.bin is missing: copy the export again"):
        ExportRecord.read(folder)


@pytest.mark.parametrize("sha256", [{"graphs/../../model.bin": "0"}, ["model.bin"], {"/etc/passwd": "0"}])
def test_checksums_of_files_outside_are_refused(folder: Path, sha256: object) -> None:
    write_json(folder / "export.json", {**read_json(folder / "export.json"), "sha256": sha256})
    with pytest.raises(UserError, match=r"export\.json is not the record of an export"):
        ExportRecord.read(folder)


def made(data: DataConfig) -> tuple[dict[str, Any], str]:
    """Return the header and the text of a card."""
    trained, _ = make_trained("ctranslate2")
    settings = replace(trained.settings, data=data)
    text = card(load("export.target", "ctranslate2"), replace(trained, settings=settings), RECORD, [])
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def test_the_header_of_the_card_names_languages_and_a_hub_dataset() -> None:
    header, body = made(DataConfig(source_lang="no", target_lang="1e3"))  # YAML would misread both
    assert header["language"] == ["no", "1e3"]
    assert header["datasets"] == ["wmt/wmt14"]
    assert "wmt/wmt14 (de-en)" in body


@pytest.mark.parametrize(
    "data",
    [
        DataConfig(hub_dataset="/home/me/secret/wmt14"),
        DataConfig(hub_dataset="../secret/wmt14"),
        DataConfig(source="files", train=["/home/me/secret/train.en", "../secret/train.de"]),
    ],
    ids=str,
)
def test_local_folders_are_not_published(data: DataConfig) -> None:
    header, body = made(data)
    assert "datasets" not in header
    assert "secret" not in body


def test_each_corpus_of_a_mixture_is_described_and_the_example_begins_with_its_tag() -> None:
    header, body = made(DataConfig(source="files", train=["a.en", "a.de"], tag="<de>", mixture={"back": BACK}))
    assert header["language"] == ["en", "de", "fr"]
    assert "<de> A man sleeps." in body
    assert "- `<fr>`: de to fr\n" in body
    assert "- de to fr: files: b.de, b.fr\n" in body
