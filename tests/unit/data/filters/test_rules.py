"""Rules of filters, on what they must drop and on what they must keep."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from nmt.config.data import DataConfig
from nmt.data.filters.rules import language_check
from nmt.errors import UserError
from nmt.text.language import OTHER_CODES, language_identifier
from tests.unit.data.filters.test_pipeline import run


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
    for languages, least, count in ((("en", "de-AT"), 0.3, 2), (("en_GB", "DE"), 0.25, 4)):
        data = DataConfig(source_lang=languages[0], target_lang=languages[1], min_language_probability=least)
        kept, dropped = run(pairs, data)
        assert kept == pairs[:count]
        assert list(dropped.items())[-1] == ("language", 5 - count)
    with pytest.raises(UserError, match="cannot check xx: py3langid knows de, en"):
        language_check("xx", 0.3)


def test_a_missing_classifier_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    language_identifier.cache_clear()
    with pytest.raises(UserError, match=r"needs the package py3langid: .*pip install 'py3langid>=0\.4'"):
        run([("a", "b")], DataConfig(min_language_probability=0.1))


def test_the_classifier_knows_languages_also_under_other_codes() -> None:
    pytest.importorskip("py3langid", reason="needs the extra language")
    language_identifier.cache_clear()
    labels = {*language_identifier().labels}
    assert {*OTHER_CODES.values()} <= labels
    assert not {*OTHER_CODES} & labels
    norwegian = "Jeg vet ikke hva jeg skal gjøre med alle disse bøkene som ligger her."
    assert [language_check(code, 0.5)(norwegian) for code in ("nb_NO", "no", "en")] == [True, True, False]
