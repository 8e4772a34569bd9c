"""export.json: what it says of the files of an export, and what it keeps private."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.features.exports.record import ExportRecord, VerificationRecord, read_export_record
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.storage.files import checksum, read_json, write_json

RECORD = ExportRecord(
    nmt="1",
    target="ctranslate2",
    quantization="int8",
    languages=("en", "de"),
    positions=9,
    checkpoint=CheckpointRecord("averaged", 7, path="/home/somebody/outputs/run/checkpoints/averaged"),
    origin=CheckpointRecord("best", 5, path="../private/best"),
    verified=VerificationRecord(1, 1, 0.0, None, "verified"),
)
FILES = {"model.bin": "weights", "graphs/encoder.bin": "graph", "config.yaml": "seed: 1\n", "README.md": "A model."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    RECORD.write(tmp_path)
    return tmp_path


def test_files_are_listed_with_their_checksums(folder: Path) -> None:
    record = read_export_record(folder)
    assert set(record.files) == set(FILES)
    assert record.sha256 == {name: checksum(folder / name) for name in FILES if name != "README.md"}
    record.verify(folder)


def test_no_folder_of_the_machine_is_published(folder: Path) -> None:
    written = (folder / "export.json").read_text(encoding="utf-8")
    assert "somebody" not in written
    assert "private" not in written
    assert read_export_record(folder).checkpoint == replace(RECORD.checkpoint, path="averaged")


@pytest.mark.parametrize("name", ["model.bin", "graphs/encoder.bin", "config.yaml"])
def test_files_that_were_changed_or_lost_are_named(folder: Path, name: str) -> None:
    (folder / name).write_text("something else", encoding="utf-8")
    with pytest.raises(UserError, match=rf"{name} is damaged or was changed: copy the export again"):
        read_export_record(folder).verify(folder)
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{name} is missing: copy the export again"):
        read_export_record(folder).verify(folder)


def test_the_card_may_be_edited(folder: Path) -> None:
    (folder / "README.md").write_text("A model with a licence.", encoding="utf-8")
    read_export_record(folder).verify(folder)


def test_exports_of_older_versions_have_no_checksums(folder: Path) -> None:
    content = read_json(folder / "export.json")
    del content["sha256"]
    write_json(folder / "export.json", content)
    read_export_record(folder).verify(folder)


@pytest.mark.parametrize(
    "sha256", [{"../model.bin": "0"}, {"graphs/../../model.bin": "0"}, ["model.bin"], {"/etc/passwd": "0"}]
)
def test_checksums_of_files_outside_are_refused(folder: Path, sha256: object) -> None:
    write_json(folder / "export.json", {**read_json(folder / "export.json"), "sha256": sha256})
    with pytest.raises(UserError, match=r"export\.json is not the record of an export"):
        read_export_record(folder)
