"""Rules of filters, on what they must drop and on what they must keep."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from nmt.config.data import DataConfig
from nmt.data.filters.rules import has_equal_links, is_sentence, language_check, same_numbers, share_of_letters
from nmt.errors import UserError
from nmt.text.language import OTHER_CODES, language_identifier
from tests.unit.data.filters.test_pipeline import run


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("नई दिल्ली है", 1.0),
        ("க்கு 12", 4 / 6),
        ("Hello world", 1.0),
        ("", 1.0),
        ("  ", 1.0),
        ("ab 12", 0.5),
        ("12:30", 0.0),
        ("日本語。", 0.75),
        ("a-b", 2 / 3),
    ],
)
def test_the_share_of_letters_leaves_out_spaces(text: str, share: float) -> None:
    assert share_of_letters(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        ("A cat sleeps.", "Eine Katze schläft.", True),
        ("See https://a.org for all the details.", "Einzelheiten finden Sie unter https://a.org im Netz.", True),
        ("See https://a.org for the details.", "Einzelheiten finden Sie unter https://b.org.", False),
        ("See the details there.", "Einzelheiten unter www.b.org.", False),
        ("https://a.org/x", "https://a.org/x", False),
        ("Write to me@a.org about the new offer.", "Schreiben Sie an me@a.org wegen des neuen Angebots.", True),
        ("Write to me@a.org.", "Schreiben Sie uns.", False),
        ("Text <b>bold</b> and more text here", "Text fett und noch mehr Text", False),
        ("5 < 6 and 7 > 6", "5 < 6 und 7 > 6", True),
        ("Meet me @ noon", "Mittags", True),
        ("To book, visit www.a.org, or call us.", "Buchen Sie unter www.a.org oder am Telefon.", True),
        ("Read more of it here (http://a.org/b).", "Hier ist noch mehr davon: http://a.org/b", True),
        ("Please write to me@a.org.", "Bitte schreiben Sie an me@a.org, gern heute.", True),
        (
            "You will find the text at https://a.org/b?c=1.",
            "全文请参见https://a.org/b?c=1。谢谢大家，再见，祝您愉快。",
            True,
        ),
        (
            "You will find the text at https://a.org/b?c=1.",
            "全文请参见https://a.org/b?c=2。谢谢大家，再见，祝您愉快。",
            False,
        ),
    ],
)
def test_links_must_be_the_same_and_not_most_of_a_side(source: str, target: str, is_kept: bool) -> None:
    assert has_equal_links(source, target) is is_kept
    assert has_equal_links(target, source) is is_kept


@pytest.mark.parametrize(
    "text",
    [
        "Home | News | Contact | Imprint",
        "Start » Produkte » Schuhe » Stiefel",
        "© 2019 Example Ltd.",
        "Alle Rechte vorbehalten.",
        "This site uses technically necessary cookies.",
        "Wir verwenden Cookies.",
        "Diese Website nutzt Cookies.",
        "Alle Cookies akzeptieren",
        "Nous utilisons des cookies.",
        "Utilizamos cookies propias y de terceros.",
        "Please enable JavaScript in your browser.",
        "Bitte JavaScript aktivieren",
        "Click here to subscribe",
        "Lire la suite »",
        "The minister resigned. Read more ...",
        "[…] Weiterlesen",
        "Powered by WordPress",
        "Read our privacy policy",
    ],
)
def test_menus_and_notices_are_dropped(text: str) -> None:
    assert not is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "She baked cookies for the whole class.",
        "Die Kinder mögen Cookies mit Schokolade.",
        "The copyright of the book belongs to her sister.",
        "He wanted to read more of it before he went to bed.",
        "You should sleep more, and read more.",
        "Elle veut lire la suite.",
        "The click of the door woke her.",
        "Yes / no, she thought.",
        "Either A | B or C.",
    ],
)
def test_ordinary_sentences_about_such_things_are_kept(text: str) -> None:
    assert is_sentence(text)


@pytest.mark.parametrize("text", ["<a ", "a@", "(c) ", "cookies ", "x.@", "www.", "enable "])
def test_long_hostile_text_is_judged_soon_enough_for_the_limit_of_tests(text: str) -> None:
    assert not has_equal_links(text * 100_000, "") or is_sentence(text * 100_000)


def test_many_spaces_after_a_call_to_read_more_are_judged_soon_enough_for_the_limit_of_tests() -> None:
    spaces = " " * 1_000_000
    assert is_sentence(f"Read more{spaces}of it.")
    assert not is_sentence(f"Read more{spaces}.")


@pytest.mark.parametrize(
    ("source", "target", "same"),
    [
        ("1,234.5 of 10", "10 von 1.234,5", True),
        ("1,000,000 and 1\u202f000", "1.000.000 und 1 000", True),
        ("3.14", "3,14", True),
        ("at 8:00", "um 8 Uhr", True),
        ("07", "7", True),
        ("no number", "keine Zahl", True),
        ("in 2012 100 people", "100 Menschen in 2012", True),
        ("١٢", "12", True),
        ("١٬٢٣٤٫٥", "1,234.5", True),
        ("1,00,000 and १२,३४,५६७.५", "100000 und 1.234.567,5", True),
        ("1.50 of 1,234.50", "1,5 von 1.234,5", True),
        ("at 8:30 on 20/10/2012", "am 20.10.2012 um 8.30 Uhr", True),
        ("1.000", "1000", True),
        ("1.000", "1", False),
        ("1.500", "1.5", False),
        ("150", "15", False),
        ("12", "21", False),
        ("2 and 2", "2", False),
        ("1000", "100", False),
        ("two", "2", False),
        ("9" * 5000, "9" * 5000, True),
    ],
)
def test_numbers_agree_whatever_separates_their_digits(source: str, target: str, same: bool) -> None:
    assert same_numbers(source, target) is same
    assert same_numbers(target, source) is same


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
