"""BLEU's tokenizer follows the target language, as sacreBLEU's own does, or the settings."""

import sys

import pytest
import sacrebleu
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab

from nmt.compute.machine import Machine
from nmt.config.data import DataConfig
from nmt.config.decoding import EvaluationConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError
from nmt.evaluation.bleu import bleu_tokenizer, check_tokenizers, make_bleu
from nmt.evaluation.metrics import Translated, score, score_text
from nmt.evaluation.split import Split
from nmt.training import validation

HYPOTHESES = ["猫坐在垫子上。", "我今天去学校，他在家。"]
REFERENCES = ["那只猫坐在垫子上。", "今天我去学校，他待在家里。"]


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("zh", "zh"),
        ("ja", "ja-mecab"),
        ("ko", "ko-mecab"),
        ("de", "13a"),
        ("fi", "13a"),
        ("zh-CN", "zh"),
        ("pt_BR", "13a"),
    ],
)
def test_the_tokenizer_is_that_of_the_language_unless_it_is_set(language: str, tokenizer: str) -> None:
    assert bleu_tokenizer(language) == tokenizer
    assert bleu_tokenizer(language, "char") == "char"


def test_chinese_is_scored_as_sacrebleu_scores_it_by_default() -> None:
    found, own = score(HYPOTHESES, REFERENCES, "zh")["bleu"], BLEU(trg_lang="zh")
    assert found.score == own.corpus_score(HYPOTHESES, [REFERENCES]).score
    assert "|tok:zh|" in found.signature
    assert found.signature == str(own.get_signature())
    assert found.score > sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="13a").score + 10


def test_all_scores_have_the_tokenizer_that_is_set() -> None:
    text = Translated(HYPOTHESES, [REFERENCES], "zh", ["a cat", "a school"], EvaluationConfig(bleu_tokenizer="char"))
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="char").score
    assert score_text(text)["bleu"].score == expected
    assert "|tok:char|" in score_text(text)["bleu"].signature


@pytest.mark.parametrize("setting", ["auto", "char"])
def test_validation_has_the_tokenizer_of_eval(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    split = Split("valid", ["a cat", "a school"], REFERENCES)
    monkeypatch.setattr(validation, "TorchEngine", lambda *_: None)
    monkeypatch.setattr(validation, "translate_together", lambda *_, **__: HYPOTHESES)
    config = Config(
        data=DataConfig(target_lang="zh"),
        training=TrainingConfig(valid_sentences=2),
        evaluation=EvaluationConfig(bleu_tokenizer=setting),
    )
    machine = Machine(torch.device("cpu"), torch.float32)
    found = validation.decoded_bleu(None, machine, config, None, None, split)  # type: ignore[arg-type]
    expected = Translated(HYPOTHESES, [REFERENCES], "zh", settings=config.evaluation)
    assert found == score_text(expected)["bleu"].score


@pytest.mark.parametrize(("language", "module"), [("ja", tokenizer_ja_mecab), ("ko", tokenizer_ko_mecab)])
def test_a_missing_package_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, language: str, module: object) -> None:
    monkeypatch.setattr(module, "MeCab", None)
    monkeypatch.setattr(sys, "executable", "/opt/nmt/python")
    command = rf"/opt/nmt/python -m pip install 'sacrebleu\[{language}\]'"
    message = rf"^BLEU needs the tokenizer {language}-mecab, .* with {command}.*[^\n]*$"
    with pytest.raises(UserError, match=message) as caught:
        score(["x"], ["x"], language)
    assert "\n" not in str(caught.value)
    config = Config(data=DataConfig(target_lang=language))
    with pytest.raises(UserError, match="BLEU needs the tokenizer"):
        check_tokenizers(config, ["valid"])


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"evaluation\.bleu_tokenizer=14a is not one of auto, 13a, zh"):
        EvaluationConfig(bleu_tokenizer="14a")
    with pytest.raises(UserError, match="sacreBLEU has no tokenizer 14a: set"):
        make_bleu("14a")
