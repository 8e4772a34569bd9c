"""Comparisons say which differences are larger than chance, and what makes them unfair."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.keys import with_values
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.evaluation.record import read_evaluation, write_evaluation
from nmt.report import command as report
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.layout import RunLayout, scores_file
from nmt.runs.scores import scores_folder
from tests.report.runs import renamed
from tests.report.test_pages import bleu_of


@pytest.fixture
def copy(first: Config) -> Iterator[Config]:
    """Copy the first run."""
    made = renamed(first, "copy")
    shutil.copytree(first.run_folder, made.run_folder)
    yield made
    shutil.rmtree(made.run_folder)


def compare(config: Config, *names: str) -> str:
    """Write the page of a comparison and return it."""
    report.run(with_values(config, {"compare": list(names)}))
    return (config.runs_folder / names[0] / f"compared-{'-'.join(names[1:])}.html").read_text(encoding="utf-8")


def change_scores(config: Config, **changes: Any) -> None:
    file = scores_file(RunLayout(config.run_folder).evaluation, "test")
    write_evaluation(file, replace(read_evaluation(file), **changes))


def test_p_values_are_printed_and_significant_differences_are_marked(
    first: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    html = compare(first, "first", "second")
    bleu, second = capsys.readouterr().out.splitlines()[1:3]
    assert bleu.split()[:2] == ["first", f"{bleu_of(first):.2f}"]
    assert second.split()[1] == f"{bleu_of(renamed(first, 'second')):.2f}"
    assert second.endswith("*")
    assert float(second.split()[-2]) < 0.05
    assert html.count('class="significant"') == 4
    assert html.count('<figure class="chart">') == 5
    assert "Not shown" not in html
    scores = [[float(each) for each in re.findall(rf"<span>{name} ([\d.]+)<", html)] for name in ("first", "second")]
    gaps = [abs(one - other) for one, other in zip(*scores, strict=True)]
    assert len(gaps) == 20
    assert gaps == sorted(gaps, reverse=True)


def test_equal_runs_differ_by_chance(first: Config, copy: Config, capsys: pytest.CaptureFixture[str]) -> None:
    compare(first, "first", "copy")
    *rows, speed = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["copy"]]
    assert rows
    assert {row[-1] for row in rows} == {"1.000"}
    assert speed[1:] == ["0.00"]  # this record has none


def test_engines_of_a_run_are_compared_by_scores_speed_and_size(
    first: Config, copy: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation, weights = RunLayout(copy.run_folder).evaluation, copy.run_folder / "model.safetensors"
    weights.write_bytes(bytes(4_000_000))
    checkpoint = CheckpointRecord("averaged", 4, path=str(copy.run_folder))
    change_scores(copy, sentences_per_second=20.0, checkpoint=checkpoint, machine="cpu in fp32")
    engines = with_values(copy, {"compare": ["copy", "copy:int8"]})
    report.run(engines)
    assert "no split that all of these runs have translated" in capsys.readouterr().out
    in_int8 = scores_folder(with_values(copy, {"engine": "int8"}))
    shutil.copytree(evaluation, in_int8)
    file = scores_file(in_int8, "test")
    write_evaluation(file, replace(read_evaluation(file), sentences_per_second=50.0, engine="int8"))
    report.run(engines)
    *found, same, page = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert same == ["no", "settings", "differ"]
    assert "Megabytes" in Path(page[1]).read_text(encoding="utf-8")
    assert found[-6:] == [
        *(["test:", "Sentences", "per", "second", "(cpu", "in", "fp32)"], ["copy", "20.00"], ["copy:int8", "50.00"]),
        *(["test:", "Megabytes", "(weights)"], ["copy", "4.00"], ["copy:int8", "1.00"]),
    ]


def test_translations_of_different_searches_are_named(
    first: Config, copy: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, beam in ((first, 4), (copy, 1)):
        change_scores(run, decoding=replace(first.decoding, beam=beam, batch_tokens=1000 * beam))
    try:
        html = compare(first, "first", "copy")
    finally:
        change_scores(first, decoding=None)
    warning = "test was translated with different searches: decoding.beam is 4 for first, 1 for copy"
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "searches" in line)
    assert line == f"warning: {warning}"
    assert f"{warning}." in html


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["first"], "at least two different runs"),
        (["first", "first"], "at least two different runs"),
        (["first", "nobody"], "there is no run nobody"),
    ],
)
def test_an_impossible_comparison_is_refused(first: Config, names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare(first, *names)
