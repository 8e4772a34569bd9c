"""`nmt score` and the forms in which `nmt translate` writes."""

import io
import json
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from nmt.cli import main
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS
from tests.unit.commands.test_evaluate_and_translate import (
    REFERENCES,
    SOURCES,
    Run,
    content,
    run,
    translator_of,
)

__all__ = ["content", "run"]  # fixtures
LINES = [line for line in SOURCES if line]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_score_prints_log_probabilities_of_the_translations(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    config, overrides = run
    pairs = [(source, target) for source, target in zip(SOURCES, REFERENCES, strict=True) if source]
    rows = "".join(f"{source}\t{target}\n" for source, target in pairs)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert main(["score", *overrides]) == 0
    found = [line.split("\t") for line in capsysbinary.readouterr().out.decode().splitlines()]
    assert [(row[2], row[3]) for row in found] == pairs
    translator = translator_of(config)
    model, tokenizer = translator.models[0], translator.tokenizer
    for row, source, target in zip(
        found, *(encode(list(side)) for encode, side in
                 zip((tokenizer.encode_source, tokenizer.encode_target), zip(*pairs, strict=True), strict=True)),
        strict=True,
    ):  # fmt: skip
        with torch.no_grad():
            output = model(Packed.from_sentences([[*source, EOS]]), Packed.from_sentences([[BOS, *target]]))
            loss = F.cross_entropy(model.logits(output), torch.tensor([*target, EOS]), reduction="sum")
        assert float(row[0]) == pytest.approx(-float(loss), rel=1e-4)
        assert int(row[1]) == len(target) + 1


def test_translate_writes_jsonl_and_tsv_and_accepts_ensembles(
    run: Run, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    expected = [each.candidates[0] for each in translator_of(config).translate(LINES)]
    base = ["translate", *overrides, f"input={text}"]
    assert main([*base, "translate.format=tsv"]) == 0
    rows = [line.split("\t") for line in printed(capsys).splitlines()]
    assert [(row[0], row[1]) for row in rows] == [(line, each.text) for line, each in zip(LINES, expected, strict=True)]
    assert [float(row[2]) for row in rows] == pytest.approx([each.score for each in expected], abs=1e-5)
    assert main([*base, "translate.format=jsonl", "decoding.nbest=2"]) == 0
    objects = [json.loads(line) for line in printed(capsys).splitlines()]
    assert [each["source"] for each in objects] == LINES
    assert all(each["translation"] == each["candidates"][0]["translation"] for each in objects)
    assert [len(each["candidates"]) for each in objects] == [2] * len(LINES)
    assert main([*base, "decoding.ensemble=[last]"]) == 0
    assert printed(capsys).splitlines() == [each.text for each in expected]


def test_lines_without_two_columns_are_refused(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *run[1], f"input={text}"]) == 2
    error = capsys.readouterr().err
    assert "text.en, line 1: 1 column(s), but two are needed" in error
    assert error.count("\n") == 1, error
