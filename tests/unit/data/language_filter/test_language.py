"""The filter that identifies languages, with a classifier of two languages and with the real one."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from nmt.config.data import DataConfig
from nmt.data.filters.language import LanguageCheck
from nmt.data.filters.pipeline import FilterChain, setting_of, training_filters
from nmt.errors import ConfigError, UserError
from nmt.text.language import OTHER_CODES, language_identifier


class FakeIdentifier:
    """Knows two languages by one letter each: the more of it, the more probable."""

    labels = ("de", "en")

    def rank(self, text: str) -> list[tuple[str, float]]:
        share = text.count("d") / len(text)
        return sorted([("de", share), ("en", 1 - share)], key=lambda each: -each[1])

    def classify(self, text: str) -> tuple[str, float]:
        return self.rank(text)[0]


@pytest.fixture
def fake_identifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = SimpleNamespace(from_model_file=lambda _, norm_probs: FakeIdentifier())
    module = SimpleNamespace(LanguageIdentifier=made, MODEL_FILE="")
    monkeypatch.setitem(sys.modules, "py3langid", module)
    monkeypatch.setitem(sys.modules, "py3langid.langid", module)
    language_identifier.cache_clear()
    yield
    language_identifier.cache_clear()


@pytest.mark.usefixtures("fake_identifier")
def test_both_sides_must_probably_be_in_their_languages() -> None:
    pairs = [("eeee", "dddd"), ("eeed", "ddde"), ("eddd", "dddd"), ("eeee", "eeed"), ("dddd", "eeee")]
    assert LanguageCheck(("en", "de-AT"), 0.3).keeps(pairs) == [True, True, False, False, False]
    assert LanguageCheck(("en_GB", "DE"), 0.25).keeps(pairs) == [True, True, True, True, False]
    with pytest.raises(UserError, match="cannot check xx: py3langid knows de, en"):
        LanguageCheck(("en", "xx"), 0.3)


def test_a_missing_classifier_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    language_identifier.cache_clear()
    config = DataConfig(min_language_probability=0.1)
    with pytest.raises(UserError, match=r"needs the package py3langid: .*pip install 'py3langid>=0\.4'"):
        FilterChain(training_filters(config), config)


def test_the_classifier_knows_languages() -> None:
    pytest.importorskip("py3langid", reason="needs the extra language")
    language_identifier.cache_clear()
    german, english = "Ein Mann geht mit seinem Hund spazieren.", "A man is walking his dog."
    pairs = [(english, german), (german, english), (english, english), ("", "")]
    assert LanguageCheck(("en", "de"), 0.1).keeps(pairs) == [True, False, False, False]


def test_languages_are_found_by_codes_that_the_classifier_does_not_have() -> None:
    pytest.importorskip("py3langid", reason="needs the extra language")
    language_identifier.cache_clear()
    labels = {*language_identifier().labels}
    assert {*OTHER_CODES.values()} <= labels
    assert not {*OTHER_CODES} & labels
    norwegian = "Jeg vet ikke hva jeg skal gjøre med alle disse bøkene som ligger her."
    pairs = [("I do not know what to do with all these books that lie here.", norwegian)]
    assert LanguageCheck(("en", "nb_NO"), 0.5).keeps(pairs) == LanguageCheck(("en", "no"), 0.5).keeps(pairs) == [True]
    assert LanguageCheck(("en", "iw"), 0.1).keeps(pairs) == [False]


@pytest.mark.usefixtures("fake_identifier")
def test_the_filter_comes_last_and_counts_what_it_drops() -> None:
    config = DataConfig(min_language_probability=0.3, deduplicate=True)
    chain = FilterChain(training_filters(config), config)
    assert chain.apply([("eeee", "dddd"), ("dddd", "eeee"), ("eeee", "dddd")]) == [("eeee", "dddd")]
    assert list(chain.dropped.items())[-2:] == [("duplicates", 1), ("language", 1)]
    assert setting_of("language") == "min_language_probability"


def test_an_impossible_probability_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data\.min_language_probability=1\.0 must be at least 0 and below 1"):
        DataConfig(min_language_probability=1.0)
