"""export.json: what it says of the files of an export, and what it keeps private."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.export.record import ExportRecord, read_export_record
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import checksum, read_json, write_json

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    RECORD.write(tmp_path)
    return tmp_path


def test_it_is_read_as_it_was_written_without_folders_of_the_machine(folder: Path) -> None:
    record = read_export_record(folder)
    checksums = {name: checksum(folder / name) for name in FILES if name != "README.md"}
    origin = replace(RECORD.origin, path="best") if RECORD.origin else None
    assert record == replace(
        RECORD, checkpoint=replace(RECORD.checkpoint, path="averaged"), origin=origin, sha256=checksums
    )


@pytest.mark.parametrize("name", ["model.bin", "graphs/encoder.bin", "config.yaml"])
def test_files_that_were_changed_or_lost_are_named(folder: Path, name: str) -> None:
    (folder / "README.md").write_text("A model with a licence.", encoding="utf-8")
    read_export_record(folder).check_files(folder)
    (folder / name).write_text("something else", encoding="utf-8")
    with pytest.raises(UserError, match=rf"{name} is damaged or was changed: copy the export again"):
        read_export_record(folder).check_files(folder)
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{name} is missing: copy the export again"):
        read_export_record(folder).check_files(folder)


@pytest.mark.parametrize(
    "sha256", [{"../model.bin": "0"}, {"graphs/../../model.bin": "0"}, ["model.bin"], {"/etc/passwd": "0"}]
)
def test_checksums_of_files_outside_are_refused(folder: Path, sha256: object) -> None:
    write_json(folder / "export.json", {**read_json(folder / "export.json"), "sha256": sha256})
    with pytest.raises(UserError, match=r"export\.json is not the record of an export"):
        read_export_record(folder)
