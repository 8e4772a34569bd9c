"""`nmt eval`: from a checkpoint on disk to its files and printed lines."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from nmt.cli import main
from nmt.config.tree import Config
from nmt.evaluation import evaluate as evaluation
from nmt.evaluation.evaluate import reference_nll
from nmt.evaluation.metrics import Score, score_text
from nmt.evaluation.split import Split
from nmt.storage.files import checksum
from tests.unit.commands.conftest import (
    REFERENCES,
    SOURCES,
    Run,
    engine_of,
    weights_path,
    write_split,
)
from tests.unit.small_models import log_probabilities, make_model, make_tokenizer
from tests.unit.tiny_run import write_tiny_run


def test_eval_writes_translations_and_scores_and_prints_the_scores(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    assert main(["eval", *overrides]) == 0
    hypotheses = (config.run_folder / "eval" / "test.hyp.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert hypotheses == [each.text for each in engine_of(config).translate(SOURCES)]
    assert hypotheses[1] == ""
    report = json.loads((config.run_folder / "eval" / "test.json").read_text(encoding="utf-8"))
    assert report["chrf"]["score"] == sacrebleu.corpus_chrf(hypotheses, [REFERENCES]).score
    assert report["ter"]["score"] == sacrebleu.corpus_ter(hypotheses, [REFERENCES]).score
    assert "tok:13a" in report["bleu"]["signature"]
    assert "compounds:atat" in report["bleu_paper"]["signature"]
    assert report["sentences"] == len(SOURCES)
    assert report["sentences_per_second"] == pytest.approx(report["sentences"] / report["seconds"])
    assert report["decoding"] == asdict(config.decoding)
    assert report["engine"] == "torch"
    assert report["checkpoint"]["name"] == "step-00000008"
    assert report["checkpoint"]["step"] == 8
    assert report["checkpoint"]["sha256"] == checksum(weights_path(config))
    printed = capsys.readouterr().out.splitlines()[-5:]
    assert [line.split()[0] for line in printed] == ["bleu", "bleu_paper", "chrf", "chrfpp", "ter"]
    for line in printed:
        name, number, signature = line.split()
        assert float(number) == round(report[name]["score"], 2)
        assert signature == report[name]["signature"]


def test_scores_of_other_checkpoints_go_to_separate_folders(run: Run, tmp_path: Path) -> None:
    config, overrides = run
    copied = tmp_path / "elsewhere" / "step-00000008"
    shutil.copytree(weights_path(config).parent, copied)
    folder = config.run_folder / "eval"
    named = (
        (["checkpoint=last", "decoding.beam=4", "decoding.batch_tokens=99"], folder),
        (["decoding.beam=1"], folder / "beam_1"),
        (["decoding.beam=1", "decoding.alpha=1", "checkpoint=8"], folder / "step-00000008" / "alpha_1.0-beam_1"),
        (["checkpoint=8"], folder / "step-00000008"),
        (["decoding.ensemble=[step-00000008]"], folder / "last+step-00000008"),
    )
    for words, expected in named:
        shutil.rmtree(folder, ignore_errors=True)
        assert main(["eval", *overrides, *words]) == 0
        assert [path.parent for path in folder.rglob("*.json")] == [expected], words
        assert [path.parent for path in folder.rglob("test.hyp.txt")] == [expected], words
    shutil.rmtree(folder)
    assert main(["eval", *overrides, f"checkpoint={copied}"]) == 0
    (other,) = folder.glob("*/test.json")
    assert json.loads(other.read_text(encoding="utf-8"))["checkpoint"]["path"] == str(copied)


@pytest.mark.parametrize(
    ("tags", "languages"),
    [([], {"source_lang": "de", "target_lang": "en"}), (["<de>"], {})],
    ids=["languages", "vocabulary"],
)
def test_ensembles_of_models_for_other_languages_or_vocabularies_are_refused(
    run: Run, capsys: pytest.CaptureFixture[str], tags: list[str], languages: dict[str, str]
) -> None:
    config, overrides = run
    tokenizer = make_tokenizer(tags=tags)
    write_tiny_run(config.runs_folder / "other", make_model(tokenizer), tokenizer, **languages)
    assert main(["eval", *overrides, f"decoding.ensemble=[{config.runs_folder}/other/checkpoints/last]"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search("outputs/other/checkpoints/last has .*: an ensemble needs models with the same vocabulary", line)


def test_tags_are_no_part_of_the_sources_that_metrics_see(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    config, overrides = run
    ten = " ".join(["dog"] * 10)
    write_split(config, "test", ["@de@ a dog", f"@de@ {ten}", "@de@ a cat"], ["ein Hund", "zehn Hunde", "eine Katze"])
    copies = ["a dog", ten, "a cat"]
    seen: list[list[str]] = []

    def see(hypotheses: list[str], references: list[list[str]], language: str, *more: Any) -> dict[str, Score]:
        seen.append(more[0])
        return score_text(hypotheses, references, language, *more)

    monkeypatch.setattr(evaluation, "translate_together", lambda engine, sources, name: copies)
    monkeypatch.setattr(evaluation, "score_text", see)
    assert main(["eval", *overrides, "data.tag=@de@"]) == 0
    assert seen == [copies]


def test_batched_nll_equals_the_nll_of_each_reference_alone(run: Run) -> None:
    engine = engine_of(run[0])
    sides = engine.tokenizer.encode_source(SOURCES), engine.tokenizer.encode_target(REFERENCES)
    pieces = torch.cat([log_probabilities(engine.models[0], *pair) for pair in zip(*sides, strict=True)])
    assert reference_nll(engine, Split("test", SOURCES, REFERENCES)) == pytest.approx(-float(pieces.mean()), rel=1e-5)


@pytest.mark.slow
def test_two_processes_write_the_scores_of_one(run: Run) -> None:
    config, overrides = run
    assert main(["eval", *overrides]) == 0
    report = config.run_folder / "eval" / "test.json"
    alone = json.loads(report.read_text(encoding="utf-8"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*torchrun, "-m", "nmt", "eval", *overrides], check=True, capture_output=True, timeout=120)
    together = json.loads(report.read_text(encoding="utf-8"))
    assert together["processes"] == 2
    assert together["nll"] == pytest.approx(alone["nll"], rel=1e-5)
    for name in ("bleu", "bleu_paper", "chrf", "ter"):
        assert together[name] == alone[name]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "override", "complaint"),
    [
        (lambda config: write_split(config, "test", SOURCES, REFERENCES[:2]), "", "has 5 lines, but .*test.de has 2"),
        (lambda config: (config.data_folder / "test.de").unlink(), "", "there is no .*test.de: run `make data`"),
        (lambda config: write_split(config, "test", [], []), "", "is empty"),
        (lambda config: (config.data_folder / "test.de").write_bytes(b"ok\n\xff\n"), "", "test.de, line 2: not UTF-8"),
        (lambda config: None, "evaluation.splits=[dev]", "there is no .*dev.en: run `make data`"),
        (lambda config: None, "checkpoint=best", "no checkpoint best"),
        (lambda config: damage(weights_path(config)), "", "model.safetensors is damaged"),
        (
            lambda config: (config.data_folder / "test.de").rename(config.data_folder / "test.fr"),
            "data.target_lang=fr",
            "translates en-de, but the settings say en-fr",
        ),
    ],
)
def test_eval_refuses_bad_input_in_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], spoil: Callable[[Config], object], override: str, complaint: str
) -> None:
    config, overrides = run
    spoil(config)
    assert main(["eval", *overrides, *filter(None, [override])]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("nmt: ")
    assert captured.err.count("\n") == 1
    assert re.search(complaint, captured.err)
    assert not (config.run_folder / "eval").exists()


def test_scores_that_the_search_has_maximised_are_marked(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    _, overrides = run
    search = ["decoding.strategy=mbr", "decoding.candidates=4"]
    for settings, expected in (([], set[str]()), (search, {"chrf", "chrfpp"})):
        assert main(["eval", *overrides, *settings]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert {line.split()[0] for line in lines if "the search maximised" in line} == expected
        assert {"bleu", "bleu_paper", "chrf", "chrfpp", "ter"} <= {line.split()[0] for line in lines}
