"""`nmt eval` and `nmt translate` write alignments and their error rates."""

import io
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.data.manifest import MANIFEST, TaskRecord
from nmt.decoding.attention import align
from nmt.decoding.engine import Engine
from nmt.decoding.load import load
from nmt.evaluation.alignment_error import score_links
from nmt.storage.files import checksum, seal, write_json
from nmt.text.alignments import read_gold
from tests.unit.small_models import LINES
from tests.unit.tiny_run import write_tiny_run

SOURCES, REFERENCES = LINES, [*LINES[1:], LINES[0]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run, beside the text of a test set."""
    for language, lines in (("en", SOURCES), ("de", REFERENCES)):
        write(tmp_path / "data" / "tiny" / f"test.{language}", lines)
    return write_tiny_run(tmp_path / "outputs" / "tiny")


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def overrides(run: Path) -> list[str]:
    return [
        f"paths.data={run.parents[1] / 'data'}", f"paths.outputs={run.parent}", "name=tiny", "data.corpus=tiny",
        "decoding.beam=3", "decoding.extra_length=8", "runtime.device=cpu", "runtime.precision=fp32",
        "runtime.threads=1",
    ]  # fmt: skip


def engine_of(run: Path, **settings: Any) -> Engine:
    engine = load(run, device="cpu", precision="fp32").engine
    return engine.with_search(replace(engine.config, **settings), 1)


def test_eval_scores_alignments_if_the_true_ones_are_known(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, gold = run.parents[1] / "data" / "tiny", ["0-0 1p1"] * len(SOURCES)
    write(folder / "test.alignments", gold)
    for sum_ in ("0", checksum(folder / "test.alignments")):
        record = asdict(TaskRecord(inputs={}, outputs={"test.alignments": sum_}, result={}))
        steps = {"steps": {"align test": record}}
        write_json(folder / MANIFEST, {**steps, "seal": seal(steps)})
        assert main(["eval", *overrides(run)]) == (2 if sum_ == "0" else 0)
        if sum_ == "0":
            assert "test.alignments is not what was prepared" in capsys.readouterr().err
            assert not (run / "eval").exists()
    found = align(engine_of(run), SOURCES, REFERENCES)
    score = score_links((line, read_gold(truth)) for line, truth in zip(found, gold, strict=True))
    assert json.loads((run / "eval" / "test.json").read_text(encoding="utf-8"))["alignments"] == asdict(score)
    assert f"error rate {score.error_rate:.1f}%" in capsys.readouterr().out


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_translate_writes_alignments_beside_translations_and_in_jsonl(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = list(engine_of(run, alignments=True).translate(SOURCES))
    feed(monkeypatch, "\n".join(SOURCES).encode())
    path = tmp_path / "links"
    assert main(["translate", *overrides(run), "translate.format=jsonl", f"translate.alignments={path}"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    for row, line, translation in zip(rows, lines, expected, strict=True):
        found = translation.candidates[0].alignment
        assert row["alignment"] == row["candidates"][0]["alignment"] == [list(link) for link in found]
        assert line == " ".join(f"{source}-{target}" for source, target in found)
    assert any(lines)
