"""Inflection, compared with forms written by hand."""

import pytest

from nmt.demo.grammar import english, german
from nmt.demo.grammar.determiners import BARE, MANY, MY, NOT_A, SOME, THE, THIS, A, Determiner
from nmt.demo.grammar.features import Agreement, Case, Language, Order, Tense
from nmt.demo.grammar.lexicon import ADJECTIVES, BE, RAIN, noun_named, verb_named
from nmt.demo.grammar.phrases import NounPhrase
from nmt.demo.grammar.verbgroup import CAN, HAVE_TO, SHOULD, VerbGroup
from nmt.demo.grammar.words import spelled

N, ACC, DAT, GEN = Case.NOMINATIVE, Case.ACCUSATIVE, Case.DATIVE, Case.GENITIVE
ADJECTIVE = {word.english: word for word in ADJECTIVES}
ICH, DU, ER = Agreement(1, False), Agreement(2, False), Agreement(3, False)
WIR, SIE = Agreement(1, True), Agreement(3, True)


@pytest.mark.parametrize(
    ("determiner", "adjective", "noun", "plural", "case", "expected"),
    [
        (THE, "old", "man", False, N, "der alte Mann"),
        (THE, "old", "man", False, DAT, "dem alten Mann"),
        (THE, "old", "man", False, GEN, "des alten Mannes"),
        (THE, "", "student", False, ACC, "den Studenten"),
        (THE, "", "student", False, GEN, "des Studenten"),
        (THE, "", "neighbour", False, ACC, "den Nachbarn"),
        (THE, "", "boy", False, DAT, "dem Jungen"),
        (THE, "young", "woman", False, DAT, "der jungen Frau"),
        (THE, "small", "child", False, ACC, "das kleine Kind"),
        (THE, "small", "child", True, N, "die kleinen Kinder"),
        (THE, "small", "child", True, DAT, "den kleinen Kindern"),
        (THE, "", "woman", True, DAT, "den Frauen"),
        (A, "old", "man", False, N, "ein alter Mann"),
        (A, "old", "man", False, ACC, "einen alten Mann"),
        (A, "new", "book", False, ACC, "ein neues Buch"),
        (A, "new", "lamp", False, DAT, "einer neuen Lampe"),
        (MY, "new", "book", True, ACC, "meine neuen Bücher"),
        (MY, "expensive", "coat", False, ACC, "meinen teuren Mantel"),
        (NOT_A, "red", "apple", True, ACC, "keine roten Äpfel"),
        (THIS, "high", "mountain", False, ACC, "diesen hohen Berg"),
        (MANY, "old", "book", True, ACC, "viele alte Bücher"),
        (SOME, "brave", "girl", True, DAT, "einigen mutigen Mädchen"),
        (BARE, "cold", "water", False, ACC, "kaltes Wasser"),
        (BARE, "cold", "juice", False, DAT, "kaltem Saft"),
        (BARE, "lazy", "man", True, DAT, "faulen Männern"),
    ],
)
def test_noun_phrases(
    determiner: Determiner, adjective: str, noun: str, plural: bool, case: Case, expected: str
) -> None:
    phrase = NounPhrase(determiner, noun_named(noun), plural, ADJECTIVE.get(adjective))
    assert spelled(phrase.render(Language.GERMAN, case)) == expected


@pytest.mark.parametrize(
    ("verb", "agreement", "tense", "order", "expected"),
    [
        ("read", DU, Tense.PRESENT, Order.SECOND, ("liest", "")),
        ("read", ER, Tense.PAST, Order.SECOND, ("hat", "gelesen")),
        ("read", ER, Tense.PAST, Order.LAST, ("", "gelesen hat")),
        ("open", ER, Tense.PRESENT, Order.SECOND, ("macht", "auf")),
        ("open", ER, Tense.PRESENT, Order.LAST, ("", "aufmacht")),
        ("open", WIR, Tense.PERFECT, Order.LAST, ("", "aufgemacht haben")),
        ("open", ER, Tense.PRESENT, Order.ZU, ("", "aufzumachen")),
        ("repair", ER, Tense.PRESENT, Order.ZU, ("", "zu reparieren")),
        ("invite", DU, Tense.PRESENT, Order.SECOND, ("lädst", "ein")),
        ("drive", ICH, Tense.PAST, Order.SECOND, ("bin", "gefahren")),
        ("arrive", SIE, Tense.PLUPERFECT, Order.LAST, ("", "angekommen waren")),
        ("wait", DU, Tense.PRESENT, Order.SECOND, ("wartest", "")),
        ("smile", ICH, Tense.PRESENT, Order.SECOND, ("lächle", "")),
        ("feed", ICH, Tense.PRESENT, Order.SECOND, ("füttere", "")),
        ("have", DU, Tense.PRESENT, Order.SECOND, ("hast", "")),
        ("like", ICH, Tense.PRESENT, Order.SECOND, ("mag", "")),
        ("take part", ER, Tense.FUTURE, Order.LAST, ("", "teilnehmen wird")),
    ],
)
def test_german_verbs(verb: str, agreement: Agreement, tense: Tense, order: Order, expected: tuple[str, str]) -> None:
    assert bracket(VerbGroup(verb_named(verb), tense), agreement, order) == expected


def bracket(group: VerbGroup, agreement: Agreement, order: Order) -> tuple[str, str]:
    """Return the text of the German verb bracket."""
    opening, closing = group.german_order(agreement, order)
    return spelled(opening), spelled(closing)


def test_auxiliaries_and_modals() -> None:
    assert bracket(VerbGroup(BE), DU, Order.SECOND) == ("bist", "")
    assert bracket(VerbGroup(BE, Tense.PAST), SIE, Order.SECOND) == ("waren", "")
    assert bracket(VerbGroup(RAIN, Tense.PAST), ER, Order.LAST) == ("", "geregnet hat")
    assert bracket(VerbGroup(verb_named("open"), modal=CAN), ICH, Order.SECOND) == ("kann", "aufmachen")
    assert bracket(VerbGroup(verb_named("open"), Tense.PAST, HAVE_TO), WIR, Order.LAST) == ("", "aufmachen mussten")
    assert bracket(VerbGroup(verb_named("read"), modal=SHOULD), DU, Order.SECOND) == ("solltest", "lesen")


@pytest.mark.parametrize(
    ("preposition", "phrase", "expected"),
    [
        ("in", "dem Park", "im Park"),
        ("in", "das Kino", "ins Kino"),
        ("in", "die Schule", "in die Schule"),
        ("an", "dem Bahnhof", "am Bahnhof"),
        ("zu", "der Haltestelle", "zur Haltestelle"),
        ("bei", "dem Arzt", "beim Arzt"),
        ("in", "dem", "in dem"),
        ("in", "den Wald", "in den Wald"),
    ],
)
def test_contractions(preposition: str, phrase: str, expected: str) -> None:
    assert german.contract(preposition, phrase) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("alt", "älter"),
        ("groß", "größer"),
        ("teuer", "teurer"),
        ("hoch", "höher"),
        ("kalt", "kälter"),
    ],
)
def test_german_comparatives(word: str, expected: str) -> None:
    assert german.comparative(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Vater", "Vaters"), ("Haus", "Hauses"), ("Sohn", "Sohnes"), ("Auto", "Autos"), ("Onkel", "Onkels")],
)
def test_genitives(word: str, expected: str) -> None:
    assert german.genitive(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("apple", "an"), ("book", "a"), ("hour", "an"), ("university", "a"), ("old man", "an"), ("umbrella", "an")],
)
def test_articles(word: str, expected: str) -> None:
    assert english.article(word) == expected


@pytest.mark.parametrize(
    ("base", "third", "past", "gerund"),
    [
        ("plan", "plans", "planned", "planning"),
        ("carry", "carries", "carried", "carrying"),
        ("repair", "repairs", "repaired", "repairing"),
        ("watch", "watches", "watched", "watching"),
        ("play", "plays", "played", "playing"),
        ("shop", "shops", "shopped", "shopping"),
    ],
)
def test_english_verbs(base: str, third: str, past: str, gerund: str) -> None:
    assert (english.third_person(base), verb_named(base).english[1], english.gerund(base)) == (third, past, gerund)


def test_english_irregular_verbs() -> None:
    assert [english.gerund(base) for base in ("forget", "lie", "swim", "see", "travel")] == [
        "forgetting",
        "lying",
        "swimming",
        "seeing",
        "travelling",
    ]
    assert [english.comparative(word) for word in ("big", "heavy", "expensive", "nice", "narrow", "easy")] == [
        "bigger",
        "heavier",
        "more expensive",
        "nicer",
        "narrower",
        "easier",
    ]
