"""The current code resumes from a checkpoint of every format with the losses of the code that wrote it."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.runs.checkpoint import FORMAT, load
from nmt.runs.layout import META
from tests.golden.__main__ import END, HOME, KEPT_AT, SETTINGS
from tests.integration.toy import refuse, succeed

FORMATS = sorted(HOME.glob("format-*"))


@pytest.fixture(params=FORMATS, ids=lambda folder: folder.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(request.param, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_checkpoint_format_has_a_golden_run() -> None:
    assert [folder.name for folder in FORMATS] == [f"format-{number}" for number in range(1, FORMAT + 1)]


def test_resumed_golden_run_has_the_recorded_losses(golden: Path) -> None:
    said = succeed(["train", *SETTINGS, f"training.steps={END}"])
    assert f"going on from step {KEPT_AT}" in said
    events = [json.loads(line) for line in (golden / "outputs/golden/metrics.jsonl").read_text().splitlines()]
    losses = {event["step"]: event["loss"] for event in events if event["event"] == "train"}
    expected = json.loads((golden / "losses.json").read_text())
    for step in range(KEPT_AT + 1, END + 1):
        assert losses[step] == pytest.approx(expected[str(step)], rel=1e-4)  # other machines round otherwise


def test_golden_checkpoint_can_be_evaluated(golden: Path) -> None:
    succeed(["eval", *SETTINGS, "checkpoint=last"])
    assert len((golden / "outputs/golden/eval/last/test.hyp.txt").read_text().splitlines()) == 6


def test_newer_checkpoint_formats_are_refused(golden: Path) -> None:
    folder = golden / f"outputs/golden/checkpoints/step-{KEPT_AT:08}"
    meta: dict[str, Any] = json.loads((folder / META).read_text())
    del meta["seal"]
    meta["format"] = FORMAT + 1
    meta["seal"] = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
    (folder / META).write_text(json.dumps(meta))
    with pytest.raises(UserError, match=f"format {FORMAT + 1}, .* update nmt"):
        load(folder)
    error = refuse(["train", *SETTINGS, f"training.steps={END}"])
    assert "update nmt" in error
