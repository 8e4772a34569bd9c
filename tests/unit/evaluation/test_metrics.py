"""Scores against sacreBLEU's own command, and the paper's tokens against examples worked out by hand."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab
from sacremoses import MosesTokenizer

from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.config.data import DataConfig
from nmt.config.decoding import EvaluationConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.evaluation.bleu import check_tokenizers, paper_tokenizer, split_compounds
from nmt.evaluation.metrics import sacrebleu_metric, score_text
from nmt.evaluation.paper import paper_score
from nmt.evaluation.split import Split
from nmt.training import validation

REFERENCES = [
    "Der E-Mail-Test war am Montag.",
    "Sie sagte: „Das ist ja wunderbar!“",
    "Ein Mann mit einem roten Hut geht über die Straße.",
    "Zwei Kinder spielen im Nord-Süd-Park, und es regnet.",
]
OTHER_REFERENCES = [
    "Der Test der E-Mails war am Montag.",
    "„Das ist ja wunderbar“, sagte sie.",
    "Ein Mann mit rotem Hut überquert die Straße.",
    "Im Nord-Süd-Park spielen zwei Kinder und es regnet.",
]
HYPOTHESES = [
    "Der E-Mail-Test war am Dienstag.",
    'Sie sagte: "Das ist wirklich wunderbar!"',
    "Ein Mann mit rotem Hut geht über die Straße.",
    "Zwei Kinder spielen im Nord-Süd-Park und es regnet.",
]
CHINESE, CHINESE_REFERENCES = (
    ["猫坐在垫子上。", "我今天去学校，他在家。"],
    ["那只猫坐在垫子上。", "今天我去学校，他待在家里。"],
)


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
    scores = score_text(HYPOTHESES, references, "de")
    assert list(scores) == ["bleu", "bleu_paper", "chrf", "chrfpp", "ter"]
    for name, line in zip(("bleu", "chrf", "ter", "chrfpp"), printed, strict=True):
        assert round(scores[name].score, 6) == line["score"]
        assert scores[name].signature == line["signature"]
        assert scores[name].signature.startswith(f"nrefs:{len(references)}|")


def test_paper_bleu_equals_bleu_on_the_papers_tokens() -> None:
    moses = MosesTokenizer(lang="de")

    def by_hand(lines: list[str]) -> list[str]:
        text = "\n".join(lines).translate(dict.fromkeys(map(ord, "„“"), '"'))
        tokens = "\n".join(moses.tokenize(line, return_str=True) for line in text.split("\n"))
        for word in ("E-Mail-Test", "E-Mails", "Nord-Süd-Park"):
            tokens = tokens.replace(word, word.replace("-", " ##AT##-##AT## "))
        return tokens.split("\n")

    texts = map(by_hand, (HYPOTHESES, REFERENCES, OTHER_REFERENCES))
    expected = sacrebleu.corpus_bleu(next(texts), list(texts), tokenize="none", force=True)
    paper = score_text(HYPOTHESES, [REFERENCES, OTHER_REFERENCES], "de")["bleu_paper"]
    assert paper.score == expected.score
    assert re.fullmatch(
        r"nrefs:2\|case:mixed\|eff:no\|tok:moses-de-.*\|quotes:plain\|compounds:atat\|smooth:exp.*", paper.signature
    )
    assert "compounds:whole" in score_text(HYPOTHESES, [REFERENCES], "fr")["bleu_paper"].signature


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("E-Mail-Test", "E ##AT##-##AT## Mail ##AT##-##AT## Test"),
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),
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


@pytest.mark.parametrize(("setting", "tokenizer"), [("auto", "zh"), ("char", "char")])
def test_validation_and_eval_score_with_the_same_tokenizer(
    monkeypatch: pytest.MonkeyPatch, setting: str, tokenizer: str
) -> None:
    own = BLEU(tokenize=tokenizer)
    expected = own.corpus_score(CHINESE, [CHINESE_REFERENCES]).score
    settings = EvaluationConfig(bleu_tokenizer=setting)
    found = score_text(CHINESE, [CHINESE_REFERENCES], "zh", settings=settings)["bleu"]
    assert (found.score, found.signature) == (expected, str(own.get_signature()))
    monkeypatch.setattr(validation, "TorchEngine", lambda *_, **__: None)
    monkeypatch.setattr(validation, "translate_together", lambda *_, **__: CHINESE)
    config = Config(data=DataConfig(target_lang="zh"), training=TrainingConfig(valid_sentences=2), evaluation=settings)
    split, machine = Split("valid", ["a", "b"], CHINESE_REFERENCES), Machine(torch.device("cpu"), torch.float32)
    assert validation.decoded_bleu(None, machine, config, None, None, split) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("language", "module"), [("ja", tokenizer_ja_mecab), ("ko", tokenizer_ko_mecab)])
def test_a_missing_package_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, language: str, module: object) -> None:
    monkeypatch.setattr(module, "MeCab", None)
    monkeypatch.setattr(sys, "executable", "/opt/nmt/python")
    command = rf"/opt/nmt/python -m pip install 'sacrebleu\[{language}\]'"
    with pytest.raises(UserError, match=rf"^BLEU needs the tokenizer {language}-mecab, .* with {command}.*[^\n]*$"):
        check_tokenizers(Config(data=DataConfig(target_lang=language)), ["valid"])


def test_texts_that_cannot_be_scored_are_refused() -> None:
    with pytest.raises(UserError, match=r"1,001 translations but 2 references"):
        score_text(["x"] * 1001, [["x"] * 2], "de")
    with pytest.raises(UserError, match="nothing to score"):
        score_text([], [[]], "de")
    with pytest.raises(UserError, match="sacreBLEU has no tokenizer '': run `make eval` again"):
        sacrebleu_metric("bleu", "")


@pytest.mark.parametrize(
    ("experiment", "split", "bleu", "perplexity"),
    [
        ("wmt14_en_de_base", "test", 27.3, None),
        ("wmt14_en_de_big", "test", 28.4, None),
        ("wmt14_en_de_base", "valid", None, None),
        ("table3/c4", "valid", 24.5, 5.75),
        ("table3/c4", "test", None, None),
        ("multi30k", "test", None, None),
    ],
)
def test_only_the_papers_recipes_have_its_results(
    experiment: str, split: str, bleu: float | None, perplexity: float | None
) -> None:
    config = compose([f"experiment={experiment}"])
    assert paper_score("bleu_paper", config, split) == bleu
    assert paper_score("perplexity", config, split) == perplexity
    for change in ("model.encoder_layers=4", "data.test=[sacrebleu:wmt16]", "data.hub_dataset=wmt/wmt16"):
        assert paper_score("bleu_paper", compose([f"experiment={experiment}", change]), "test") is None
    config = compose([f"experiment={experiment}", "data.test=[sacrebleu:wmt14/full]"])
    assert paper_score("bleu_paper", config, split) == bleu
