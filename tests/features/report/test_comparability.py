"""Comparisons show the scores of the task, and say what makes them unfair."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.evaluation.metric import Score
from nmt.evaluation.record import read_evaluation, write_evaluation
from nmt.features.report import command as report
from nmt.features.report import compare_command as compare
from nmt.features.report import page
from nmt.runs.layout import RunLayout, scores_file
from tests.features.report.runs import make_run, prepare_toy, references, renamed, settings

RUNS = ("tree-1", "tree-2", "other")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Make three runs with the same translations."""
    monkeypatch.setattr(page, "_library", lambda: "/* the chart library */")
    prepare_toy(tmp_path)
    found = settings(tmp_path)
    for name in RUNS:
        make_run(renamed(found, name), references(found))
    return found


def change_scores(config: Config, name: str, **changes: Any) -> None:
    file = scores_file(RunLayout(Path(config.paths.outputs, name)).evaluation, "test")
    write_evaluation(file, replace(read_evaluation(file), **changes))


@pytest.mark.parametrize("names", [list(RUNS), ["tree-*", "other"]])
def test_runs_of_another_task_are_compared_by_its_metrics(
    config: Config, names: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, f1 in zip(RUNS, (90.0, 92.0, 95.5), strict=True):
        figures = {"bracket_f1": Score(f1, "evalb"), "complete_match": Score(f1 / 2, "evalb")}
        change_scores(config, name, scores=figures, languages=("en", "trees"))
    compare.run(with_values(config, {"compare": names}))
    output = capsys.readouterr().out
    assert "test: Bracket F1  (evalb)" in output
    assert "95.50" in output
    assert "test: Complete match  (evalb)" in output
    assert "BLEU" not in output  # of symbols
    assert "significantly" not in output  # nothing was tested
    report.run(with_values(config, {"compare": names}))
    (file,) = Path(config.paths.outputs).rglob("compared-*.html")
    html = file.read_text(encoding="utf-8")
    assert ">Bracket F1<" in html
    assert "95.50" in html


@pytest.mark.parametrize("names", [list(RUNS), ["tree-*", "other"]])
def test_translations_of_different_searches_are_named(
    config: Config, names: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, beam in zip(RUNS, (4, 4, 1), strict=True):
        change_scores(config, name, decoding=replace(config.decoding, beam=beam, batch_tokens=1000 * beam))
    compare.run(with_values(config, {"compare": names}))
    warning = "test was translated with different searches: decoding.beam is 4 for tree-1, 4 for tree-2, 1 for other"
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "searches" in line)
    assert line == f"warning: {warning}"
    report.run(with_values(config, {"compare": names}))
    (file,) = Path(config.paths.outputs).rglob("compared-*.html")
    assert f"{warning}." in file.read_text(encoding="utf-8")
