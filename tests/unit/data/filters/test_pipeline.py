"""Filters of the training text, against plain set and loop arithmetic."""

import random
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from nmt.config.data import DataConfig
from nmt.data.engine import Engine
from nmt.data.filters import pipeline
from nmt.data.filters.overlap import HeldOut
from nmt.data.manifest import Collected
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.language import OTHER_CODES, language_identifier

ONE = Engine()


def run(
    pairs: list[Pair], data: DataConfig, size: int = 3, held_out: HeldOut | None = None, engine: Engine = ONE
) -> tuple[list[Pair], dict[str, int]]:
    """Return the pairs that the filters of training text keep, and how many each drops."""
    counts = Collected()
    with patch.object(pipeline, "CHUNK_PAIRS", size):
        chunks = list(pipeline.apply(pipeline.filters_of(data, "train"), data, iter(pairs), counts, held_out, engine))
    kept = [pair for chunk in chunks for pair in chunk]
    assert (counts.read, counts.kept) == (len(pairs), len(kept))
    return kept, counts.dropped


def test_filters_apply_in_order_and_count_what_they_drop() -> None:
    good = [("a b c", "d e f"), ("x", "y"), ("a b c", "d e g")]
    pairs: list[Pair] = [good[0], ("", "x"), ("x", "  "), ("a", "b\0"), good[1], good[0]]
    pairs += [("w " * 11, "v " * 11), ("a", "b c d e"), (" a b", "a b"), ("w " * 11, "w " * 11), good[2]]
    kept, dropped = run(pairs, DataConfig(drop_copies=True, max_words=10, max_ratio=3.0, deduplicate=True))
    assert kept == good
    counts = {"empty": 2, "control characters": 1, "copies": 2, "words": 1, "ratio": 1, "duplicates": 1}
    assert list(dropped.items()) == list(counts.items())


@pytest.mark.parametrize(
    ("pair", "settings", "is_kept"),
    [
        (("  a   b   c  ", "d"), {"max_words": 3}, True),
        (("a b c d", "e"), {"max_words": 3}, False),
        (("a", "b c d e"), {"max_words": 3}, False),
        (("w " * 999, "v"), {"max_words": 0}, True),
        (("a b", "c d e"), {"max_ratio": 1.5}, True),
        (("c d e f", "a b"), {"max_ratio": 1.5}, False),
    ],
)
def test_limits_keep_what_is_within_them(pair: Pair, settings: dict[str, Any], is_kept: bool) -> None:
    assert run([pair], DataConfig(**{"max_words": 0, **settings}))[0] == ([pair] if is_kept else [])


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_deduplication_agrees_with_a_set(size: int) -> None:
    generator = random.Random(size)
    pairs: list[Pair] = [(str(generator.randrange(900)), str(generator.randrange(2))) for _ in range(3000)]
    kept, dropped = run(pairs, DataConfig(deduplicate=True), size)
    assert kept == list(dict.fromkeys(pairs))
    assert dropped["duplicates"] == len(pairs) - len(kept)


def test_duplicates_are_compared_by_their_letters_and_sides() -> None:
    pairs: list[Pair] = [("Page 1 of 20.", "Seite 1 von 20."), ("Yes.", "वह की है"), ("Yes.", "वह का है")]
    pairs += [("a b", "c"), ("a", "b c"), ("c", "a b"), ("1", "2"), ("1", "3")]
    kept, _ = run([*pairs, ("page 17  of 20", "SEITE 17 von 20!")], DataConfig(deduplicate=True))
    assert kept == pairs


@pytest.mark.parametrize("settings", [{}, {"drop_copies": True, "max_ratio": 2.0, "deduplicate": True}])
def test_processes_keep_and_count_the_same(settings: dict[str, Any]) -> None:
    generator = random.Random(4)
    texts = ["", "a", "b", "a b", "a b c d e", "  ", "x\0y", "bb"]
    pairs: list[Pair] = [(generator.choice(texts), generator.choice(texts)) for _ in range(300)]
    data, engine = DataConfig(max_words=4, **settings), Engine(workers=2)
    assert run(pairs, data, 50, engine=engine) == run(pairs, data)


class FakeIdentifier:
    """Knows two languages by one letter each: the more of it, the more probable."""

    labels = ("de", "en")

    def rank(self, text: str) -> list[tuple[str, float]]:
        share = text.count("d") / len(text)
        return sorted([("de", share), ("en", 1 - share)], key=lambda each: -each[1])

    def classify(self, text: str) -> tuple[str, float]:
        return self.rank(text)[0]


def test_both_sides_must_probably_be_in_their_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(from_model_file=lambda _, norm_probs: FakeIdentifier())
    module = SimpleNamespace(LanguageIdentifier=made, MODEL_FILE="")
    monkeypatch.setitem(sys.modules, "py3langid", module)
    monkeypatch.setitem(sys.modules, "py3langid.langid", module)
    language_identifier.cache_clear()
    pairs: list[Pair] = [("eeee", "dddd"), ("eeed", "ddde"), ("eddd", "dddd"), ("eeee", "eeed"), ("dddd", "eeee")]
    for languages, least, count in ((("en", "de-AT"), 0.3, 2), (("en_GB", "DE"), 0.25, 4)):
        data = DataConfig(source_lang=languages[0], target_lang=languages[1], min_language_probability=least)
        kept, dropped = run(pairs, data)
        assert kept == pairs[:count]
        assert list(dropped.items())[-1] == ("language", 5 - count)
    with pytest.raises(UserError, match="cannot check xx: py3langid knows de, en"):
        run(pairs, DataConfig(source_lang="xx", min_language_probability=0.3))
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    language_identifier.cache_clear()
    with pytest.raises(UserError, match=r"needs the package py3langid: .*pip install 'py3langid>=0\.4'"):
        run(pairs, DataConfig(min_language_probability=0.3))


def test_the_classifier_knows_languages_also_under_other_codes() -> None:
    pytest.importorskip("py3langid", reason="needs the extra language")
    language_identifier.cache_clear()
    labels = {*language_identifier().labels}
    assert {*OTHER_CODES.values()} <= labels
    assert not {*OTHER_CODES} & labels
    norwegian: Pair = ("Jeg vet ikke hva jeg skal gjøre med alle disse bøkene som ligger her.",) * 2
    for languages, is_kept in ((("nb_NO", "no"), True), (("en", "no"), False)):
        data = DataConfig(source_lang=languages[0], target_lang=languages[1], min_language_probability=0.5)
        assert run([norwegian], data)[0] == ([norwegian] if is_kept else [])
