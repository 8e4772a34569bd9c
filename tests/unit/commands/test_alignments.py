"""`nmt eval` and `nmt translate` write alignments and their error rates."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.data.manifest import MANIFEST, TaskRecord
from nmt.decoding.attention import align
from nmt.evaluation.alignment_error import score_links
from nmt.storage.files import checksum, seal, write_json
from nmt.text.alignments import read_gold
from tests.integration.toy import write_lines
from tests.unit.commands.conftest import LINES, REFERENCES, SOURCES, Run, engine_of


def test_eval_scores_alignments_if_the_true_ones_are_known(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    config, overrides = run
    folder, gold = config.data_folder, ["0-0 1p1", "", *["0-0 1p1"] * (len(SOURCES) - 2)]
    write_lines(folder / "test.alignments", gold)
    for sum_ in ("0", checksum(folder / "test.alignments")):
        record = asdict(TaskRecord(inputs={}, outputs={"test.alignments": sum_}, result={}))
        steps = {"steps": {"align test": record}}
        write_json(folder / MANIFEST, {**steps, "seal": seal(steps)})
        assert main(["eval", *overrides]) == (2 if sum_ == "0" else 0)
        if sum_ == "0":
            assert "test.alignments is not what was prepared" in capsys.readouterr().err
            assert not (config.run_folder / "eval").exists()
    found = align(engine_of(config), SOURCES, REFERENCES)
    score = score_links((line, read_gold(truth)) for line, truth in zip(found, gold, strict=True))
    report = json.loads((config.run_folder / "eval" / "test.json").read_text(encoding="utf-8"))
    assert report["alignments"] == asdict(score)
    assert f"error rate {score.error_rate:.1f}%" in capsys.readouterr().out


def test_translate_writes_alignments_beside_translations_and_in_jsonl(
    run: Run, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    expected = list(engine_of(config, alignments=True).translate(LINES))
    path = tmp_path / "links"
    words = [f"input={text}", "translate.format=jsonl", f"translate.alignments={path}"]
    assert main(["translate", *overrides, *words]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    for row, line, translation in zip(rows, lines, expected, strict=True):
        found = translation.candidates[0].alignment
        assert row["alignment"] == row["candidates"][0]["alignment"] == [list(link) for link in found]
        assert line == " ".join(f"{source}-{target}" for source, target in found)
    assert any(lines)
