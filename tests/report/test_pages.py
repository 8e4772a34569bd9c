"""The page of a run: complete, self-contained, with escaped text, and with a reason for every missing section."""

import json
import re
import shutil
from dataclasses import replace
from typing import Any

import pytest
from sacrebleu import corpus_bleu

from nmt import errors
from nmt.config.tree import Config
from nmt.report import command as report
from tests.report.runs import SCRIPT_LIKE_SOURCE, make_run, references, renamed


def run_report(config: Config, **changes: Any) -> str:
    report.run(replace(config, **{"checkpoint": "last", **changes}))
    return (config.run_folder / "report.html").read_text(encoding="utf-8")


def bleu_of(config: Config) -> float:
    hypotheses = (config.run_folder / "eval" / "test.hyp.txt").read_text(encoding="utf-8").splitlines()
    return float(corpus_bleu(hypotheses, [references(config)]).score)


def test_a_complete_run_has_every_section_in_one_file(first: Config) -> None:
    html = run_report(first)
    assert "Not shown" not in html
    assert html.count('<figure class="chart">') == 5
    assert html.count("<span>line ") == 30  # of 30 sentences, each is among the worst or the best ones
    assert f"<b>{bleu_of(first):.2f}</b>" in html
    assert "<dt>Time</dt><dd>21 s; step 20 of 20</dd>" in html  # without the 1000 s before it was resumed
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    assert found
    attention = json.loads(found[1])
    assert (attention["heads"], {kind["layers"] for kind in attention["kinds"].values()}) == (2, {2})
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)|@import|url\(""", html)
    assert SCRIPT_LIKE_SOURCE not in html
    assert "&lt;/script&gt;&lt;b&gt;&amp;amp; &lt;/script&gt;" in html
    assert html.count("</script>") == 2


def test_all_scores_are_listed_and_the_named_checkpoints_sentences_are_shown(first: Config) -> None:
    scored = renamed(first, "scored")
    shutil.copytree(first.run_folder, scored.run_folder)
    usual, other = scored.run_folder / "eval", scored.run_folder / "eval" / "step-00000020"
    other.mkdir()
    record = json.loads((usual / "test.json").read_text(encoding="utf-8"))
    (other / "test.json").write_text(json.dumps(record | {"chrf": record["chrf"] | {"score": 12.34}}), "utf-8")
    (other / "test.hyp.txt").write_text("".join(f"{line}\n" for line in references(first)), "utf-8")
    aligned = {"error_rate": 10.5, "precision": 71.5, "recall": 62.5}
    (usual / "test.json").write_text(json.dumps({**record, "alignments": aligned}), encoding="utf-8")
    html = run_report(scored)
    assert "test: word alignments of the references: error rate 10.5%, precision 71.5%, recall 62.5%" in html
    assert "<td>step-00000020/test</td>" in html
    assert "<ins>" in html.replace("<ins>underlined words</ins>", "")
    html = run_report(scored, checkpoint="20")
    assert "chrF 100.0" in html
    assert "<ins>" not in html.replace("<ins>underlined words</ins>", "")
    assert re.findall(r"<td>(\S*test)</td><td>chrF</td>", html) == ["step-00000020/test", "test"]


def test_attention_is_that_of_the_sentence_with_the_tag_of_its_corpus(first: Config) -> None:
    tagged = replace(renamed(first, "tagged"), data=replace(first.data, tag="red"))
    make_run(tagged, references(tagged))
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', run_report(tagged), re.S)
    assert found
    assert "".join(json.loads(found[1])["kinds"]["encoder"]["queries"]).startswith("·red·")


def test_each_missing_section_gives_its_reason(first: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = renamed(first, "bare")
    bare.run_folder.mkdir()
    shutil.copy(first.run_folder.with_name("third") / "config.yaml", bare.run_folder)
    html = run_report(bare)
    assert "No scores yet: run <code>make eval</code>" in html
    assert html.count("no split has been translated yet: run <code>make eval</code>") == 2
    assert "nothing was logged yet" in html
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
    assert "test.en: run <code>make data</code> with the same settings" in html
    assert "BLEU as in the paper" in html
    assert html.count('<figure class="chart">') == 5
