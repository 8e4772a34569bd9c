"""What a search gives to a utility."""

from collections.abc import Sequence

import numpy as np
import pytest

from nmt.config.compose import compose
from nmt.errors import ConfigError
from nmt.features.minimum_bayes_risk import utilities
from nmt.features.minimum_bayes_risk.utilities import Matrix
from nmt.text.tokenizer import SPACE_MARK, Tokenizer
from tests.unit.decoding.test_torch_engine import random_model, train_pieces, translator


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

    monkeypatch.setattr(utilities, "by_chrf", lambda _: compare)
    tokenizer = Tokenizer(train_pieces(user_defined_symbols=[f"{SPACE_MARK}<de>"]))
    engine = translator([random_model(tokenizer)], tokenizer, strategy="mbr", candidates=2)
    list(engine.translate(["<de> a dog", "a cat"]))
    assert sorted(sources) == ["a cat", "a dog"]
