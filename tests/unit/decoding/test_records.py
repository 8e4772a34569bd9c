"""What evaluations and exports say about the checkpoint they come from."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.decoding.checkpoint_record import CheckpointRecord
from nmt.decoding.export_record import RECORD, ExportRecord, read_record
from nmt.errors import UserError
from nmt.runs.checkpoint_files import CheckpointMeta
from nmt.runs.checkpoints import Checkpoint

PLAIN = {"name": "averaged", "path": "outputs/x/checkpoints/averaged", "step": 7, "sha256": "ab"}
EXPORT: dict[str, Any] = {
    "nmt": "0.1.0",
    "target": "ctranslate2",
    "quantization": "int8",
    "languages": ["en", "de"],
    "positions": 64,
    "checkpoint": {**PLAIN, "averaged_from": ["step-00000006", "step-00000007"]},
    "verified": {"sentences": 4},
}


def checkpoint(averaged_from: Sequence[str] = ()) -> Checkpoint:
    return Checkpoint(
        path=Path(PLAIN["path"]),  # type: ignore[arg-type]
        step=7,
        weights={},
        trainer=None,
        config_text="",
        meta=CheckpointMeta(step=7, files={"model.safetensors": "ab"}, averaged_from=averaged_from),
    )


def test_a_checkpoint_is_described_without_empty_fields() -> None:
    assert CheckpointRecord.of(checkpoint()).as_json() == PLAIN
    described = CheckpointRecord.of(checkpoint(averaged_from=["a", "b"])).as_json()
    assert described == {**PLAIN, "averaged_from": ["a", "b"]}


def test_an_ensemble_and_an_export_are_described() -> None:
    first = CheckpointRecord.of(checkpoint())
    second = replace(first, name="step-00000006", step=6)
    assert replace(first, ensemble=(second,)).as_json() == {
        **PLAIN,
        "ensemble": [{**PLAIN, "name": "step-00000006", "step": 6}],
    }
    exported = replace(first, export="outputs/x/export", quantization="int8")
    assert list(exported.as_json()) == ["name", "path", "step", "sha256", "export", "quantization"]


@pytest.mark.parametrize("averaged_from", [(), ("a", "b")])
def test_a_description_can_be_read_back(averaged_from: tuple[str, ...]) -> None:
    record = replace(CheckpointRecord.of(checkpoint()), averaged_from=averaged_from)
    assert CheckpointRecord.from_json(json.loads(json.dumps(record.as_json()))) == record


def test_an_export_is_read(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text(json.dumps(EXPORT))
    assert read_record(tmp_path) == ExportRecord(
        target="ctranslate2",
        quantization="int8",
        languages=("en", "de"),
        positions=64,
        checkpoint=CheckpointRecord(
            name="averaged",
            path="outputs/x/checkpoints/averaged",
            step=7,
            sha256="ab",
            averaged_from=("step-00000006", "step-00000007"),
        ),
    )


@pytest.mark.parametrize(
    "damage",
    [
        [],
        {name: value for name, value in EXPORT.items() if name != "positions"},
        {**EXPORT, "languages": ["en"]},
        {**EXPORT, "positions": "64"},
        {**EXPORT, "checkpoint": None},
        {**EXPORT, "checkpoint": {**PLAIN, "step": "7"}},
        {**EXPORT, "checkpoint": {**PLAIN, "averaged_from": 3}},
    ],
)
def test_a_damaged_record_of_an_export_is_refused(tmp_path: Path, damage: object) -> None:
    (tmp_path / RECORD).write_text(json.dumps(damage))
    with pytest.raises(UserError, match=r"export\.json is not the record of an export: run `make export` again"):
        read_record(tmp_path)
