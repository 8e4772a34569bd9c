"""The sentences, trees and alignments of the demo language, compared with ones written by hand."""

from dataclasses import replace

import pytest

from nmt.demo.grammar import (
    Clause,
    Mode,
    Order,
    Placed,
    Role,
    Sentence,
    coordinated,
    infinitive,
    related,
    subordinate,
)
from nmt.demo.phrases import Phrase, described, fixed, noun_phrase, prepositional, pronoun, word_phrase
from nmt.demo.words import (
    PLURAL,
    Case,
    Entry,
    adjective_form,
    determiner_form,
    present,
    words,
)
from nmt.parsing.trees import bracketed
from nmt.text.alignments import write_gold

NOMINATIVE, ACCUSATIVE, DATIVE = Case
ANNA = word_phrase("NP", "NNP", "Anna", "Anna")


def word(kind: str, english: str) -> Entry:
    return next(each for each in words(kind) if english in each.english or f"{english}))" in each.english[0])


def np(text: str, case: Case = ACCUSATIVE, negation: object = None) -> Phrase:
    """Return a noun phrase of a determiner, perhaps an adjective, and a noun."""
    determiner, *adjective, noun = text.split()
    entry = next(each for each in words("noun") if noun in each.english)
    described_by = word("adjective", adjective[0]) if adjective else None
    kein = determiner == "kein"
    article = next(
        each for each in words("determiner") if (each.german == ("kein",) if kein else determiner in each.english)
    )
    return noun_phrase(entry, article, noun != entry.english[0], case, described_by, negation)


def verb(english: str) -> Entry:
    return word("copula" if english == "be" else "verb", english)


HE, HE_AGAIN = (pronoun(word("pronoun", "he"), NOMINATIVE) for _ in range(2))


def obj(text: str) -> Placed:
    return Role.OBJECT, np(text)


def to(text: str) -> Placed:
    return Role.OBLIQUE, prepositional("to", "zu", np(text, DATIVE))


def asked(english: str, german: str, tag: str = "WP") -> Phrase:
    return word_phrase("WHNP", tag, english, german)


NOT = object()
TEACHER, CHILDREN = np("the teacher", NOMINATIVE), np("the children", NOMINATIVE)
YESTERDAY, NOW = ((Role.TIME, fixed(word("time", each))) for each in ("yesterday", "now"))
ALREADY = Role.ALREADY, fixed(word("adverb", "already"))
GARDEN = Role.PLACE, prepositional("in", "in", np("the garden", DATIVE))
TIRED = Role.PREDICATE, described(word("adjective", "tired"), very=True)
BUS = Role.OBLIQUE, prepositional("for", "auf", np("the bus"))
WHO_WENT = Clause(replace(asked("who", "die"), plural=True), verb("go"), Mode.PAST, (to("the school"),))
THAT_ANNA_READ = Clause(ANNA, verb("read"), Mode.PAST, (), (Role.OBJECT, asked("that", "das", "WDT")))
THAT_HE_OPENS = subordinate(word("complement", "that"), Clause(HE, verb("open"), Mode.PRESENT, (obj("the door"), NOW)))
BECAUSE = subordinate(word("conjunction", "because"), Clause(HE_AGAIN, verb("be"), Mode.PRESENT, (TIRED,)))
TO_OPEN = infinitive(Clause(HE, verb("open"), Mode.PAST, (obj("the door"),)))
GAVE = (Role.RECIPIENT, np("the girl", DATIVE)), obj("a red camera"), YESTERDAY
BY_HAND = [
    (Clause(np("the old man", NOMINATIVE), verb("give"), Mode.PAST, GAVE),
     "The old man gave the girl a red camera yesterday.",
     "Der alte Mann hat gestern dem Mädchen eine rote Kamera gegeben.",
     "0-0 1-1 2-2 3p3 3-10 4-5 5-6 6-7 7-8 8-9 9-4"),
    (Clause(TEACHER, verb("read"), Mode.PAST, (obj("the book"), YESTERDAY), negation=NOT),
     "The teacher did not read the book yesterday.", "Der Lehrer hat gestern das Buch nicht gelesen.",
     "0-0 1-1 2-2 3-6 4-7 5-4 6-5 7-3"),
    (Clause(HE, verb("have"), Mode.PRESENT, ((Role.OBJECT, np("kein dog", negation=NOT)),), negation=NOT),
     "He does not have a dog.", "Er hat keinen Hund.", "0-0 1p1 2-2 3-1 4-2 5-3"),
    (Clause(HE, verb("open"), Mode.PROGRESSIVE, (obj("the window"), NOW)),
     "He is opening the window now.", "Er macht jetzt das Fenster auf.", "0-0 1p1 1p5 2-1 2p5 3-3 4-4 5-2"),
    (Clause(HE, verb("pick~up"), Mode.PAST, ((Role.OBJECT, pronoun(word("pronoun", "he"), ACCUSATIVE)),)),
     "He picked him up.", "Er hat ihn abgeholt.", "0-0 1p1 1-3 2-2 3p1 3p3"),
    (Clause(TEACHER, verb("rest"), Mode.PAST, (GARDEN,), YESTERDAY),
     "Yesterday the teacher rested in the garden.", "Gestern hat sich der Lehrer im Garten ausgeruht.",
     "0-0 1-3 2-4 3p1 3p2 3-7 4-5 5-5 6-6"),
    (Clause(ANNA, verb("wait"), Mode.PERFECT, (ALREADY, BUS)),
     "Anna has already waited for the bus.", "Anna hat schon auf den Bus gewartet.",
     "0-0 1-1 2-2 3-6 4-3 5-4 6-5"),
    (Clause(np("the girls", NOMINATIVE), verb("be"), Mode.PAST, (TIRED,)),
     "The girls were very tired.", "Die Mädchen waren sehr müde.", "0-0 1-1 2-2 3-3 4-4"),
    (Clause(related(np("the women", NOMINATIVE), WHO_WENT), verb("love"), Mode.PRESENT, (obj("my dog"),)),
     "The women who went to the school love my dog.",
     "Die Frauen, die zur Schule gegangen sind, lieben meinen Hund.",
     "0-0 1-1 2-2 3-5 3p6 4-3 5-3 6-4 7-7 8-8 9-9"),
    (Clause(HE, verb("lose"), Mode.PAST, ((Role.OBJECT, related(np("the book"), THAT_ANNA_READ)),)),
     "He lost the book that Anna read.", "Er hat das Buch verloren, das Anna gelesen hat.",
     "0-0 1p1 1-4 2-2 3-3 4-5 5-6 6-7 6p8"),
    (Clause(ANNA, verb("say"), Mode.PAST, ((Role.CLAUSE, THAT_HE_OPENS),)),
     "Anna said that he opens the door now.", "Anna hat gesagt, dass er jetzt die Tür aufmacht.",
     "0-0 1p1 1-2 2-3 3-4 4-8 5-6 6-7 7-5"),
    (Clause(HE, verb("try"), Mode.PAST, ((Role.CLAUSE, TO_OPEN),)),
     "He tried to open the door.", "Er hat versucht, die Tür aufzumachen.", "0-0 1p1 1-2 2-5 3-5 4-3 5-4"),
    (Clause(HE, verb("sleep"), Mode.FUTURE, (), (Role.CLAUSE, BECAUSE)),
     "Because he is very tired, he will sleep.", "Weil er sehr müde ist, wird er schlafen.",
     "0-0 1-1 2-4 3-2 4-3 5-6 6-5 7-7"),
]  # fmt: skip
QUESTIONS = [
    (Clause(TEACHER, verb("know"), Mode.PRESENT, (obj("our mother"),)), Order.FIRST,
     "Does the teacher know our mother?", "Kennt der Lehrer unsere Mutter?", "0p0 1-1 2-2 3-0 4-3 5-4"),
    (Clause(asked("who", "wer"), verb("buy"), Mode.PAST, (obj("three houses"),)), Order.SECOND,
     "Who bought three houses?", "Wer hat drei Häuser gekauft?", "0-0 1p1 1-4 2-2 3-3"),
    (Clause(HE, verb("buy"), Mode.PAST, (), (Role.OBJECT, asked("what", "was"))), Order.SECOND,
     "What did he buy?", "Was hat er gekauft?", "0-0 1-1 2-2 3-3"),
    (Clause(HE, verb("drive"), Mode.CAN, (to("the station"),), (Role.TIME, fixed(word("question", "when")))),
     Order.SECOND, "When can he drive to the station?", "Wann kann er zum Bahnhof fahren?",
     "0-0 1-1 2-2 3-5 4-3 5-3 6-4"),
]  # fmt: skip
TREES = [
    "(S (NP (DT The) (JJ old) (NN man)) (VP (VBD gave) (NP (DT the) (NN girl)) (NP (DT a) (JJ red) (NN camera)) (NP "
    "(NN yesterday))) (. .))",
    "(S (NP (DT The) (NN teacher)) (VP (VBD did) (RB not) (VP (VB read) (NP (DT the) (NN book)) (NP (NN yesterday)))) "
    "(. .))",
    "(S (NP (PRP He)) (VP (VBZ does) (RB not) (VP (VB have) (NP (DT a) (NN dog)))) (. .))",
    "(S (NP (PRP He)) (VP (VBZ is) (VP (VBG opening) (NP (DT the) (NN window)) (ADVP (RB now)))) (. .))",
    "(S (NP (PRP He)) (VP (VBD picked) (NP (PRP him)) (PRT (RP up))) (. .))",
    "(S (NP (NN Yesterday)) (NP (DT the) (NN teacher)) (VP (VBD rested) (PP (IN in) (NP (DT the) (NN garden)))) (. .))",
    "(S (NP (NNP Anna)) (VP (VBZ has) (ADVP (RB already)) (VP (VBN waited) (PP (IN for) (NP (DT the) (NN bus))))) (. "
    ".))",
    "(S (NP (DT The) (NNS girls)) (VP (VBD were) (ADJP (RB very) (JJ tired))) (. .))",
    "(S (NP (NP (DT The) (NNS women)) (SBAR (WHNP (WP who)) (S (VP (VBD went) (PP (TO to) (NP (DT the) (NN "
    "school))))))) (VP (VBP love) (NP (PRP$ my) (NN dog))) (. .))",
    "(S (NP (PRP He)) (VP (VBD lost) (NP (NP (DT the) (NN book)) (SBAR (WHNP (WDT that)) (S (NP (NNP Anna)) (VP (VBD "
    "read)))))) (. .))",
    "(S (NP (NNP Anna)) (VP (VBD said) (SBAR (IN that) (S (NP (PRP he)) (VP (VBZ opens) (NP (DT the) (NN door)) (ADVP "
    "(RB now)))))) (. .))",
    "(S (NP (PRP He)) (VP (VBD tried) (S (VP (TO to) (VP (VB open) (NP (DT the) (NN door)))))) (. .))",
    "(S (SBAR (IN Because) (S (NP (PRP he)) (VP (VBZ is) (ADJP (RB very) (JJ tired))))) (, ,) (NP (PRP he)) (VP (MD "
    "will) (VP (VB sleep))) (. .))",
    "(SQ (VBZ Does) (NP (DT the) (NN teacher)) (VP (VB know) (NP (PRP$ our) (NN mother))) (. ?))",
    "(SBARQ (WHNP (WP Who)) (SQ (VP (VBD bought) (NP (CD three) (NNS houses)))) (. ?))",
    "(SBARQ (WHNP (WP What)) (SQ (VBD did) (NP (PRP he)) (VP (VB buy))) (. ?))",
    "(SBARQ (WHADVP (WRB When)) (SQ (MD can) (NP (PRP he)) (VP (VB drive) (PP (TO to) (NP (DT the) (NN station))))) "
    "(. ?))",
]
"""The trees of the statements and questions."""


def test_statements_and_questions_are_those_written_by_hand() -> None:
    statements = [(Sentence(each[0].english(), each[0].german(Order.SECOND), "."), *each[1:]) for each in BY_HAND]
    questions = [(Sentence(each[0].english("question"), each[0].german(each[1]), "?"), *each[2:]) for each in QUESTIONS]
    for (sentence, english, german, links), tree in zip([*statements, *questions], TREES, strict=True):
        assert sentence.pair == (english, german)
        assert bracketed(sentence.tree()) == tree
        assert write_gold(sentence.alignment()) == links


def test_clauses_are_joined() -> None:
    first, second = Clause(CHILDREN, verb("sleep"), Mode.PAST), Clause(ANNA, verb("sing"), Mode.MUST)
    sentence = Sentence(*coordinated(first, word("link", "but"), second), ".")
    german = "Die Kinder haben geschlafen, aber Anna muss singen."
    assert sentence.pair == ("The children slept, but Anna must sing.", german)


ARTICLES = "der den dem die die der das das dem die die den"
WEAK = "alte alten alten alte alte alten alte alte alten alten alten alten"
MIXED = "alter alten alten alte alte alten altes altes alten alten alten alten"
STRONG = "alter alten altem alte alte alter altes altes altem alte alte alten"
MY = "mein meinen meinem meine meine meiner mein mein meinem meine meine meinen"


def test_determiners_and_adjectives_have_the_endings_of_a_textbook() -> None:
    """In the order der, die, das, plural; nominative, accusative, dative of each."""
    places = [(gender, case) for gender in ("der", "die", "das", PLURAL) for case in Case]
    the, my, old = (
        word(kind, each) for kind, each in (("determiner", "the"), ("determiner", "my"), ("adjective", "old"))
    )
    for after, expected in ((the, WEAK), (my, MIXED), (None, STRONG)):
        assert [adjective_form(old, after, *place) for place in places] == expected.split()
    for determiner, expected in ((the, ARTICLES), (my, MY)):
        assert [determiner_form(determiner, *place) for place in places] == expected.split()


@pytest.mark.parametrize(
    ("english", "forms"),
    [
        ("read", "lese liest liest lesen"), ("work", "arbeite arbeitest arbeitet arbeiten"),
        ("dance", "tanze tanzt tanzt tanzen"), ("feed", "füttere fütterst füttert füttern"),
        ("have", "habe hast hat haben"), ("invite", "lade lädst lädt laden"),
    ],
)  # fmt: skip
def test_german_verbs_are_inflected(english: str, forms: str) -> None:
    infinitive, third, _ = verb(english).german
    persons = [(1, False), (2, False), (3, False), (3, True)]
    assert [present(infinitive.rpartition("-")[2], third, *person) for person in persons] == forms.split()
