"""Groups of runs that differ in their seeds: chosen by patterns, compared as text and as a page."""

import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from sacrebleu import corpus_bleu

from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.report import command as report
from nmt.features.report import compare_command as compare
from nmt.features.report import page
from nmt.storage.files import read_json, write_json
from tests.features.report.runs import make_run, prepare_toy, references, settings

WRONG_EVERY = {"base": (6, 5, 7), "short": (2, 2, 2)}
"""Which sentences lose their first word: every sixth one, and so on, by group and seed."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Make two groups of three runs on one corpus."""
    folder = tmp_path_factory.mktemp("groups")
    prepare_toy(folder)
    config = settings(folder)
    for group, periods in WRONG_EVERY.items():
        for seed, every in enumerate(periods, start=1):
            lines = [line if (index + seed) % every else line.partition(" ")[2]
                     for index, line in enumerate(references(config))]  # fmt: skip
            make_run(replace(config, name=f"{group}-seed{seed}", seed=seed), lines)
    return config


@pytest.fixture(autouse=True)
def _no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_library", lambda: "/* the chart library */")


def bleu_of_each_run(config: Config, group: str) -> list[float]:
    found = []
    for seed in (1, 2, 3):
        file = Path(config.paths.outputs) / f"{group}-seed{seed}" / "eval" / "test.hyp.txt"
        found.append(corpus_bleu(file.read_text(encoding="utf-8").splitlines(), [references(config)]).score)
    return found


def test_groups_have_mean_spread_and_p_value(runs: Config, capsys: pytest.CaptureFixture[str]) -> None:
    compare.run(with_values(runs, {"compare": ["base-seed*", "short-*"]}))
    output = capsys.readouterr().out
    base, short = output.splitlines()[1:3]
    for line, group in ((base, "base"), (short, "short")):
        scores = bleu_of_each_run(runs, group)
        assert f"{fmean(scores):.2f} ± {stdev(scores):.2f}" in line
        assert f"({', '.join(f'{score:.2f}' for score in scores)})" in line
    assert "p =" not in base
    assert short.endswith("*")
    assert "other seeds and other test sentences" in output
    assert "no settings differ" in output
    assert "warning" not in output


def test_a_group_alone_has_a_report(runs: Config) -> None:
    report.run(with_values(runs, {"compare": ["base-*"]}))
    html = (Path(runs.paths.outputs) / "base-seed1" / "compared-base-_.html").read_text(encoding="utf-8")
    scores = bleu_of_each_run(runs, "base")
    assert f'<span class="strong">{fmean(scores):.2f}</span> ± {stdev(scores):.2f}' in html
    assert "base-seed3" in html
    assert "Not shown" not in html


def test_the_page_of_two_groups_has_the_p_value_and_the_differing_sentences(runs: Config, tmp_path: Path) -> None:
    report.run(with_values(runs, {"compare": ["base-*", "short-*"], "output": f"{tmp_path}/page.html"}))
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.count("p = 0.") == 4  # one per metric
    assert 'data-first="base-seed1" data-second="short-seed1"' in html


@pytest.mark.parametrize(
    "names", [["base-seed1", "short-seed1"], ["base-seed?", "short-seed?"]], ids=["runs", "groups"]
)
def test_comparisons_have_the_tokenizer_of_the_first_runs_scores(
    runs: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: list[str]
) -> None:
    outputs = shutil.copytree(runs.paths.outputs, tmp_path / "outputs")
    file = outputs / "base-seed1" / "eval" / "test.json"
    write_json(file, {**read_json(file), "bleu_tokenizer": "char"})
    compare.run(with_values(runs, {"compare": names, "paths.outputs": str(outputs)}))
    lines = capsys.readouterr().out.splitlines()
    assert "tok:char" in lines[0]
    hypotheses = (outputs / "base-seed1" / "eval" / "test.hyp.txt").read_text(encoding="utf-8").splitlines()
    assert f"{corpus_bleu(hypotheses, [references(runs)], tokenize='char').score:.2f}" in lines[1]


def test_groups_that_are_no_fair_sample_of_seeds_are_named(runs: Config, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = Path(runs.paths.outputs)
    folder = outputs / "short-seed4"
    shutil.copytree(outputs / "short-seed3", folder)
    try:
        text = (folder / "config.yaml").read_text(encoding="utf-8")
        text = text.replace("name: short-seed3", "name: short-seed4").replace("dropout: 0.1", "dropout: 0.2")
        (folder / "config.yaml").write_text(text, encoding="utf-8")
        compare.run(with_values(runs, {"compare": ["base-*", "short-*"]}))
    finally:
        shutil.rmtree(folder)
    output = capsys.readouterr().out
    assert "warning: the runs of short-* differ in more than their seed: model.dropout" in output
    assert "warning: runs of short-* have the same seed" in output


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["nobody-*"], "no run in .* matches nobody-"),
        (["base-*", "base-seed?"], "base-seed1 is in two groups"),
        (["base-seed1*"], "only one run"),
        (["base**", "short-*"], r"base\*\* is no pattern of runs"),
        (["**"], "is no pattern of runs"),
        (["/elsewhere/base-*"], "is no pattern of runs"),
    ],
)
def test_impossible_groups_are_refused(runs: Config, patterns: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare.run(with_values(runs, {"compare": patterns}))
