"""Minimum Bayes risk with the engine, in a small random model."""

from collections.abc import Sequence

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from nmt.config.compose import compose
from nmt.decoding import risk
from nmt.decoding.risk import Matrix
from nmt.errors import ConfigError
from nmt.text.tokenizer import SPACE_MARK, Tokenizer
from tests.unit.decoding.test_torch_engine import LINES, random_model, tokenizer, train_pieces, translator

__all__ = ["tokenizer"]


def test_minimum_bayes_risk_chooses_the_sample_that_agrees_best(tokenizer: Tokenizer) -> None:
    model, settings = random_model(tokenizer), {"candidates": 12, "top_p": 0.9}
    sampled = list(translator([model], tokenizer, strategy="sample", nbest=12, top_p=0.9).translate(LINES))
    chosen = list(translator([model], tokenizer, strategy="mbr", nbest=2, **settings).translate(LINES))
    again = list(translator([model], tokenizer, strategy="mbr", nbest=2, **settings).translate(LINES))
    metric = CHRF()
    assert chosen == again
    for candidates, (best, *_) in zip(sampled, (each.candidates for each in chosen), strict=True):
        texts = [each.text for each in candidates.candidates]
        expected = {text: sum(metric.sentence_score(text, [other]).score for other in texts) / 12 for text in texts}
        if len(texts) > 1:  # not an empty line
            assert best.score == pytest.approx(max(expected.values()))
            assert expected[best.text] == pytest.approx(best.score)


def test_bleu_is_refused_where_words_have_no_spaces_between_them() -> None:
    words = ["decoding.strategy=mbr", "decoding.utility=bleu", "data.target_lang=zh-CN"]
    with pytest.raises(ConfigError, match=r"data\.target_lang=zh-CN does not have: set decoding\.utility=chrf"):
        compose(words)
    compose([words[0], words[2]])
    compose([*words[:2], "data.target_lang=de"])


def test_utilities_see_sources_without_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []

    def compare(texts: Sequence[str], source: str) -> Matrix:
        sources.append(source)
        return np.ones((len(texts), len(texts)))

    monkeypatch.setattr(risk, "by_chrf", lambda config, device: compare)
    tokenizer = Tokenizer(train_pieces(user_defined_symbols=[f"{SPACE_MARK}<de>"]))
    engine = translator([random_model(tokenizer)], tokenizer, strategy="mbr", candidates=2)
    list(engine.translate(["<de> a dog", "a cat"]))
    assert sorted(sources) == ["a cat", "a dog"]
