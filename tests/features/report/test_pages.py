"""Whole pages: complete, self-contained, with escaped text, and with a reason for every missing section."""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sacrebleu import corpus_bleu

from nmt import cli, errors
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.report import command as report
from nmt.features.report import compare_command as compare
from nmt.features.report import page
from nmt.runs.section import Section, ShownRun
from tests.features.report.runs import SCRIPT_LIKE_SOURCE, references, renamed


@pytest.fixture(autouse=True)
def _no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the chart library, which takes seconds to bundle; the browser tests include it."""
    monkeypatch.setattr(page, "_library", lambda: "/* the chart library */")


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


def run_report(config: Config, **changes: Any) -> str:
    report.run(replace(config, **{"checkpoint": "last", **changes}))
    return (config.run_folder / "report.html").read_text(encoding="utf-8")


def test_a_complete_run_has_every_section(first: Config) -> None:
    html = run_report(first)
    assert "Not shown" not in html
    data = data_of(html)
    assert len(data["charts"]) == 10
    assert html.count("data-chart=") == 10
    assert len(data["sentences"]["test"]) == 30
    assert [each["layers"] for each in data["attention"]] == [{"encoder": 2, "decoder": 2, "cross": 2}] * 3
    assert [each["heads"] for each in data["attention"]] == [2] * 3
    assert f'<td class="n strong">{_bleu(first):.2f}</td>' in html


def test_the_page_has_the_scores_of_alignments(first: Config) -> None:
    record = first.run_folder / "eval" / "test.json"
    usual = record.read_text(encoding="utf-8")
    aligned = [
        {"layer": 2, "head": head, "state": "output", "error_rate": 10.0 + head, "precision": 71.5, "recall": 62.5}
        for head in range(9)
    ]
    changed = {**json.loads(usual), "alignments": aligned}
    record.write_text(json.dumps(changed), encoding="utf-8")
    try:
        html = run_report(first)
    finally:
        record.write_text(usual, encoding="utf-8")
    for text in ("mean of layer 2", "layer 2, head 4", "10.0 %", "71.5 %", "62.5 %"):
        assert text in html
    assert "layer 2, head 5" not in html


def _bleu(config: Config) -> float:
    hypotheses = (config.run_folder / "eval" / "test.hyp.txt").read_text(encoding="utf-8").splitlines()
    return float(corpus_bleu(hypotheses, [references(config)]).score)


def test_all_scores_are_listed_and_the_named_checkpoints_sentences_are_shown(first: Config) -> None:
    scored = renamed(first, "scored")
    shutil.copytree(first.run_folder, scored.run_folder)
    greedy = scored.run_folder / "eval" / "step-00000020"
    greedy.mkdir()
    report = json.loads((scored.run_folder / "eval" / "test.json").read_text(encoding="utf-8"))
    (greedy / "test.json").write_text(json.dumps(report | {"chrf": report["chrf"] | {"score": 12.34}}), "utf-8")
    (greedy / "test.hyp.txt").write_text("".join(f"{line}\n" for line in references(first)), "utf-8")
    html = run_report(scored)
    assert "<td>step-00000020/test</td>" in html
    assert data_of(html)["sentences"] == data_of(run_report(first))["sentences"]
    html = run_report(scored, checkpoint="20")
    assert {row[4] for row in data_of(html)["sentences"]["test"]} == {100.0}
    titles = re.findall(r"<td>(\S*test)</td><td>chrF</td>", html)
    assert titles == ["step-00000020/test", "test"]


def test_markup_in_the_corpus_is_escaped(first: Config) -> None:
    html = run_report(first)
    assert SCRIPT_LIKE_SOURCE not in html
    assert data_of(html)["sentences"]["test"][7][1] == SCRIPT_LIKE_SOURCE
    assert html.count("</script>") == 3


def test_a_page_loads_no_other_file(first: Config) -> None:
    html = run_report(first)
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert "@import" not in html
    assert "url(" not in html


def test_a_page_is_written_to_an_address_a_pipe_or_the_target_of_a_link(first: Config, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/stored.html"
    report.run(replace(first, checkpoint="last", output=address))
    written = (tmp_path / "stored.html").read_bytes()
    assert b"</html>" in written

    (tmp_path / "link.html").symlink_to("target.html")
    report.run(replace(first, checkpoint="last", output=str(tmp_path / "link.html")))
    assert (tmp_path / "link.html").is_symlink()
    assert len((tmp_path / "target.html").read_bytes()) == len(written)

    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as reader:
        read = reader.submit((tmp_path / "pipe").read_bytes)
        report.run(replace(first, checkpoint="last", output=str(tmp_path / "pipe")))
        assert len(read.result(timeout=60)) == len(written)


def test_each_missing_section_gives_its_reason(first: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = renamed(first, "bare")
    bare.run_folder.mkdir()
    shutil.copy(first.run_folder.with_name("third") / "config.yaml", bare.run_folder)
    html = run_report(bare)
    assert "No scores yet: run <code>make eval</code>" in html
    assert html.count("Not shown: ") == 4
    assert html.count("no split has been translated yet: run <code>make eval</code>") == 2
    for reason in ("nothing was logged yet", "no split has been translated yet", "no environment.json"):
        assert reason in html
    monkeypatch.setattr(errors, "has_makefile", lambda: False)
    assert "<code>make" not in run_report(bare)
    shutil.rmtree(bare.run_folder)


def test_a_page_without_data_and_checkpoint_has_the_other_sections(first: Config) -> None:
    moved = renamed(first, "moved")
    shutil.copytree(first.run_folder, moved.run_folder, ignore=shutil.ignore_patterns("checkpoints"))
    data, hidden = first.data_folder, first.data_folder.with_name("hidden")
    data.rename(hidden)
    try:
        html = run_report(moved)
    finally:
        hidden.rename(data)
        shutil.rmtree(moved.run_folder)
    assert "there is no prepared data in" in html
    assert "BLEU as in the paper" in html
    assert len(data_of(html)["charts"]) == 6


def test_a_renamed_run_is_another_one_with_the_same_scores_which_differ_by_chance(
    first: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = renamed(first, "copy")
    shutil.copytree(first.run_folder, copy.run_folder)
    try:
        compare.run(with_values(first, {"compare": ["first", "copy"]}))
    finally:
        shutil.rmtree(copy.run_folder)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["copy"]]
    assert rows
    assert {row[-1] for row in rows} == {"1.000"}


def test_runs_in_folders_of_the_same_name_are_different_ones(
    first: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = with_values(first, {"paths.outputs": str(tmp_path), "compare": ["a/x", "b/x"]})
    for name in ("a/x", "b/x"):
        shutil.copytree(first.run_folder, tmp_path / name)
    compare.run(elsewhere)
    assert {"a/x", "b/x"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["moved", "deep/moved"])
def test_sections_of_features_get_the_place_where_the_run_is_now(
    first: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen: list[Config] = []

    def note(run: ShownRun) -> list[Section]:
        seen.append(run.config)
        return []

    monkeypatch.setattr(page, "added_sections", note)
    moved = with_values(first, {"name": name, "paths.outputs": str(tmp_path)})
    shutil.copytree(first.run_folder, moved.run_folder)
    run_report(moved)
    assert (seen[0].name, seen[0].run_folder) == (name, moved.run_folder)


def test_a_comparison_prints_p_values_and_marks_significant_differences(
    first: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    compare.run(with_values(first, {"compare": ["first", "second"]}))
    bleu, second = capsys.readouterr().out.splitlines()[1:3]
    assert bleu.split()[:2] == ["first", f"{_bleu(first):.2f}"]
    assert second.split()[1] == f"{_bleu(renamed(first, 'second')):.2f}"
    assert second.endswith("*")
    assert float(second.split()[-2]) < 0.05


@pytest.mark.parametrize("letter", ["x", "語"])
def test_the_page_of_many_runs_with_long_names_has_a_short_name(
    first: Config, letter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{number}{letter * 59}" for number in range(5)]
    for name in names:
        shutil.copytree(first.run_folder, first.runs_folder / name)
    pages = []
    for compared in (names, [*names[:-1], "second"]):
        report.run(with_values(first, {"compare": compared}))
        pages.append(re.fullmatch(r"report: (.*) \(.* MB\)", capsys.readouterr().out.strip())[1])  # type: ignore[index]
    assert len({*pages}) == 2
    assert all(Path(page).is_file() for page in pages)
    for name in names:
        shutil.rmtree(first.runs_folder / name)


def test_a_comparison_page_lists_the_most_different_sentences_first(first: Config) -> None:
    report.run(with_values(first, {"compare": ["first", "second"]}))
    html = (first.run_folder / "compared-second.html").read_text(encoding="utf-8")
    rows = data_of(html)["sentences"]["test"]
    assert sorted(row[0] for row in rows) == [number for number in range(1, 31) if number % 3 != 1]  # others agree
    assert all(row[4] < 0 for row in rows)
    assert [abs(row[4]) for row in rows] == sorted((abs(row[4]) for row in rows), reverse=True)
    assert "Not shown" not in html


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["first"], "at least two different runs"),
        (["first", "first"], "at least two different runs"),
        (["first", "nobody"], "there is no run nobody"),
        (["first", "third"], "no split that all of these runs"),
    ],
)
def test_an_impossible_comparison_is_refused(first: Config, names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare.run(with_values(first, {"compare": names}))


def test_attention_writes_a_png_and_refuses_bad_input(
    first: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sentence.txt").write_text("the old king sees a tree\n", encoding="utf-8")
    words = [f"paths.outputs={first.paths.outputs}", "name=first", "checkpoint=last", f"output={tmp_path}/a.png"]
    words += [f"input={tmp_path}/sentence.txt", "attention.layer=2", "runtime.device=cpu"]
    assert cli.main(["attention", *words]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(["attention", *words, "attention.layer=3"]) == 2
    assert "attention.layer=3, but the model has 2 layers" in capsys.readouterr().err
    (tmp_path / "sentence.txt").write_text("\n", encoding="utf-8")
    assert cli.main(["attention", *words]) == 2
    assert "the first line of the input is empty" in capsys.readouterr().err
