"""Scores against sacreBLEU's own entry points, and the paper's tokens against examples worked out by hand."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import sacrebleu
from sacremoses import MosesTokenizer

from nmt.errors import UserError
from nmt.evaluation.bleu import paper_tokenizer, split_compounds
from nmt.evaluation.metrics import TEXT_METRICS, Metric, Score, Translated, score, score_text

REFERENCES = [
    "Der E-Mail-Test war am Montag.",
    "Sie sagte: „Das ist ja wunderbar!“",
    "Ein Mann mit einem roten Hut geht über die Straße.",
    "Zwei Kinder spielen im Nord-Süd-Park, und es regnet.",
]
HYPOTHESES = [
    "Der E-Mail-Test war am Dienstag.",
    'Sie sagte: "Das ist wirklich wunderbar!"',
    "Ein Mann mit rotem Hut geht über die Straße.",
    "Zwei Kinder spielen im Nord-Süd-Park und es regnet.",
]


def test_scores_equal_those_of_sacrebleus_functions() -> None:
    scores = score(HYPOTHESES, REFERENCES, "de")
    assert scores["bleu"].score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores["chrf"].score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores["ter"].score == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert 0 < scores["bleu"].score < 100


def test_chrfpp_counts_words_and_characters() -> None:
    found = score(HYPOTHESES, REFERENCES, "de")["chrfpp"]
    assert found.score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert "|nw:2|" in found.signature


OTHER_REFERENCES = [
    "Der Test der E-Mails war am Montag.",
    "„Das ist ja wunderbar“, sagte sie.",
    "Ein Mann mit rotem Hut überquert die Straße.",
    "Im Nord-Süd-Park spielen zwei Kinder und es regnet.",
]


def sacrebleu_command(folder: Path, hypotheses: Sequence[str], references: Sequence[Sequence[str]], *words: str) -> Any:
    """Return what sacreBLEU's own command prints for texts that are written to files."""
    files = []
    for number, lines in enumerate([hypotheses, *references]):
        files.append(folder / f"{number}.txt")
        files[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", *map(str, files[1:]), "-i", str(files[0]), "-w", "6", *words]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("further", [[], [OTHER_REFERENCES]])
def test_scores_and_signatures_equal_those_of_sacrebleus_command(tmp_path: Path, further: list[list[str]]) -> None:
    references = [REFERENCES, *further]
    printed = sacrebleu_command(tmp_path, HYPOTHESES, references, "-m", "bleu", "chrf", "ter")
    printed.append(sacrebleu_command(tmp_path, HYPOTHESES, references, "-m", "chrf", "--chrf-word-order", "2"))
    scores = score_text(Translated(HYPOTHESES, references, "de"))
    for name, line in zip(("bleu", "chrf", "ter", "chrfpp"), printed, strict=True):
        assert round(scores[name].score, 6) == line["score"]
        assert scores[name].signature == line["signature"]
        assert scores[name].signature.startswith(f"nrefs:{len(references)}|")


def test_paper_bleu_equals_sacrebleus_command_on_the_papers_tokens(tmp_path: Path) -> None:
    texts = [[paper_tokenizer("de")(line) for line in lines] for lines in (HYPOTHESES, REFERENCES, OTHER_REFERENCES)]
    printed = sacrebleu_command(tmp_path, texts[0], texts[1:], "-m", "bleu", "--tokenize", "none", "--force")
    found = score_text(Translated(HYPOTHESES, [REFERENCES, OTHER_REFERENCES], "de"))["bleu_paper"]
    assert round(found.score, 6) == printed["score"]
    assert re.sub(r"tok:.*atat", "tok:none", found.signature) == printed["signature"]


def test_paper_bleu_equals_bleu_on_the_papers_tokens() -> None:
    moses = MosesTokenizer(lang="de")

    def by_hand(line: str) -> str:
        for quote in "„“":
            line = line.replace(quote, '"')
        line = moses.tokenize(line, return_str=True)
        return line.replace("E-Mail-Test", "E ##AT##-##AT## Mail ##AT##-##AT## Test").replace(
            "Nord-Süd-Park", "Nord ##AT##-##AT## Süd ##AT##-##AT## Park"
        )

    expected = sacrebleu.corpus_bleu(
        [by_hand(line) for line in HYPOTHESES], [[by_hand(line) for line in REFERENCES]], tokenize="none", force=True
    )
    paper = score(HYPOTHESES, REFERENCES, "de")["bleu_paper"]
    assert paper.score == expected.score
    assert paper.score != score(HYPOTHESES, REFERENCES, "en")["bleu_paper"].score
    for field in ("case:mixed", "tok:moses-de-", "quotes:plain", "compounds:atat", "smooth:exp"):
        assert f"|{field}" in paper.signature
    assert "compounds:whole" in score(HYPOTHESES, REFERENCES, "fr")["bleu_paper"].signature


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("x-y", "x ##AT##-##AT## y"),
        ("E-Mail-Test", "E ##AT##-##AT## Mail ##AT##-##AT## Test"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("vor - und nach", "vor - und nach"),
        ("Vor- und Nachteile -x y-", "Vor- und Nachteile -x y-"),
        ("3-4 , ü-ß", "3 ##AT##-##AT## 4 , ü ##AT##-##AT## ß"),
    ],
)
def test_compounds_split_left_to_right_without_overlap(line: str, split: str) -> None:
    assert split_compounds(line) == split


def test_paper_tokens_have_plain_quotes_and_split_compounds() -> None:
    tokens = paper_tokenizer("de")
    assert tokens("„Ja“, sagte die US-Regierung.") == "&quot; Ja &quot; , sagte die US ##AT##-##AT## Regierung ."
    assert tokens("»Ja« ‚nein‘") == tokens("\"Ja\" 'nein'")
    assert paper_tokenizer("fr")("peut-être") == "peut-être"
    assert tokens("") == ""


def test_different_numbers_of_lines_are_refused_with_both_numbers() -> None:
    with pytest.raises(UserError, match=r"1,001 translations but 2 references"):
        score(["x"] * 1001, ["x"] * 2, "de")


def test_scores_of_text_are_in_the_order_shown() -> None:
    scores = score(HYPOTHESES, REFERENCES, "de")
    assert list(scores) == ["bleu", "bleu_paper", "chrf", "chrfpp", "ter"]


def test_a_metric_without_sacrebleu_gets_raw_text_and_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(text: Translated) -> Score:
        return Score(sum(map(len, (*text.hypotheses, *text.references[0]))), f"characters|lang:{text.target_lang}")

    monkeypatch.setitem(cast("dict[str, Metric]", TEXT_METRICS), "characters", Metric("Characters", count))
    assert score(["ab"], ["„c“"], "fr")["characters"] == Score(5, "characters|lang:fr")


def test_empty_references_are_refused() -> None:
    with pytest.raises(UserError, match="nothing to score"):
        score([], [], "de")


def test_an_empty_translation_lowers_the_score() -> None:
    scores = score(["", *REFERENCES[1:]], REFERENCES, "de")
    assert scores["bleu"].score < 100
    assert scores["ter"].score > 0
