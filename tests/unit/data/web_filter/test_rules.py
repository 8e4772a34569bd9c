"""Rules about web text, on what they must drop and on what they must keep."""

import pytest

from nmt.config.data import DataConfig
from nmt.data.filters.pipeline import FilterChain, training_filters
from nmt.data.filters.web import has_equal_links, is_sentence, share_of_letters


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
    assert not is_sentence(text, "Ein ganz gewöhnlicher Satz.")
    assert not is_sentence("An ordinary sentence.", text)


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
    assert is_sentence(text, text)


def test_the_filters_are_counted_in_the_table() -> None:
    config = DataConfig(drop_web_text=True, max_words=0)
    chain = FilterChain(training_filters(config), config)
    good = ("A cat sleeps.", "Eine Katze schläft.")
    bad = [("12 34 a", "12 34 a"), ("www.a.org", "www.a.org"), ("Home | A | B | C", "Start | A | B | C")]
    assert chain.apply([good, *bad]) == [good]
    assert {name: chain.dropped[name] for name in ("letters", "links", "boilerplate")} == {
        "letters": 1, "links": 1, "boilerplate": 1,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["<a ", "a@", "(c) ", "cookies ", "x.@", "www.", "enable "])
def test_long_hostile_text_is_judged_soon_enough_for_the_limit_of_tests(text: str) -> None:
    assert not has_equal_links(text * 100_000, "") or is_sentence(text * 100_000, "")


def test_many_spaces_after_a_call_to_read_more_are_judged_soon_enough_for_the_limit_of_tests() -> None:
    spaces = " " * 1_000_000
    assert is_sentence(f"Read more{spaces}of it.", "")
    assert not is_sentence(f"Read more{spaces}.", "")
