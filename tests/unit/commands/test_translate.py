"""`nmt translate` and `nmt score`: their input, and the forms in which they write."""

import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import main
from tests.unit.commands.conftest import LINES, REFERENCES, SOURCES, Run, engine_of
from tests.unit.small_models import log_probabilities


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_translate_writes_one_line_per_line_of_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    config, overrides = run
    lines = [*SOURCES, "a\u2028dog\x85", "   ", "no end of line"]
    feed(monkeypatch, "\n".join(lines).encode())
    assert main(["translate", *overrides]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out.decode().split("\n") == [each.text for each in engine_of(config).translate(lines)] + [""]
    assert captured.err == b""


@pytest.mark.parametrize(("name", "pack"), [("in.txt", bytes), ("in.gz", gzip.compress), ("in.xz", lzma.compress)])
def test_translate_reads_and_writes_files(run: Run, tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    config, overrides = run
    (tmp_path / name).write_bytes(pack("\n".join([*SOURCES, ""]).encode()))
    output = tmp_path / "new" / "out.txt"
    assert main(["translate", *overrides, f"input={tmp_path / name}", f"output={output}"]) == 0
    assert output.read_text(encoding="utf-8").split("\n")[:-1] == [
        each.text for each in engine_of(config).translate(SOURCES)
    ]


def test_translate_writes_the_n_best_with_scores(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    config, overrides = run
    feed(monkeypatch, b"a dog\n\ncats see dogs\n")
    assert main(["translate", *overrides, "decoding.nbest=3"]) == 0
    rows = [line.split(" ||| ") for line in capsysbinary.readouterr().out.decode().splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0", "1", "2", "2", "2"]
    found = engine_of(config, nbest=3).translate(["a dog", "", "cats see dogs"])
    candidates = [each for line in found for each in line.candidates]
    assert [row[1] for row in rows] == [each.text for each in candidates]
    assert [float(row[2]) for row in rows] == pytest.approx([each.score for each in candidates], abs=1e-5)


def test_translate_reports_the_line_that_is_not_utf8(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, overrides = run
    feed(monkeypatch, b"a dog\n\xc3(\n")
    assert main(["translate", *overrides]) == 2
    assert "standard input, line 2: not UTF-8" in capsys.readouterr().err
    bad, output = tmp_path / "bad.txt", tmp_path / "out.txt"
    bad.write_bytes(b"\xff\n")
    assert main(["translate", *overrides, f"input={bad}", f"output={output}"]) == 2
    assert "bad.txt, line 1: not UTF-8" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("command", ["translate", "score"])
@pytest.mark.parametrize("name", ["nowhere.txt", "/"])
def test_a_file_that_is_no_input_is_refused_before_a_model_is_loaded(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, f"paths.outputs={tmp_path}", f"input={name}"]) == 2
    assert f"input={name} does not exist or is not a file" in capsys.readouterr().err


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
    feed(monkeypatch, rows.encode())
    assert main(["score", *overrides]) == 0
    found = [line.split("\t") for line in capsysbinary.readouterr().out.decode().splitlines()]
    assert [(row[2], row[3]) for row in found] == pairs
    engine = engine_of(config)
    for row, (source, target) in zip(found, pairs, strict=True):
        ids = engine.tokenizer.encode_source([source])[0], engine.tokenizer.encode_target([target])[0]
        expected = log_probabilities(engine.models[0], *ids)
        assert float(row[0]) == pytest.approx(float(expected.sum()), rel=1e-4)
        assert int(row[1]) == len(expected)


def test_translate_writes_jsonl_and_tsv_and_accepts_ensembles(
    run: Run, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    expected = [each.candidates[0] for each in engine_of(config).translate(LINES)]
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
    assert main([*base, "translate.format=drawn"]) == 2
    assert "translate.format=drawn needs a model of trees" in capsys.readouterr().err
    assert main([*base, "decoding.ensemble=[last]"]) == 0
    assert printed(capsys).splitlines() == [each.text for each in expected]


def test_lines_without_two_columns_are_refused(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *run[1], f"input={text}"]) == 2
    error = capsys.readouterr().err
    assert "text.en, line 1: 1 column(s), but two are needed" in error
    assert error.count("\n") == 1, error


def test_an_output_that_is_an_input_is_refused(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *run[1], f"input={text}", f"output={text}"]) == 2
    assert f"{text} would be written, but is another output or an input" in capsys.readouterr().err


def test_samples_change_only_with_the_seed(run: Run, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, overrides = run
    seen = []
    for seed in (1, 1, 2):
        words = ["decoding.strategy=sample", "decoding.temperature=3", f"seed={seed}"]
        assert main(["translate", *overrides, f"input={text}", *words]) == 0
        seen.append(printed(capsys))
    assert seen[0] == seen[1] != seen[2]
