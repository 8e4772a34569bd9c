"""Sentences built from the grammar's objects, compared with translations written by hand."""

import pytest

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.choosing import HE, SHE, THEY
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import (
    BARE,
    HIS,
    MANY,
    MY,
    NOT_A,
    NUMERALS,
    OUR,
    THE,
    THIS,
    WHICH,
    A,
    Determiner,
)
from nmt.demo.grammar.features import Agreement, Case, Tense
from nmt.demo.grammar.lexicon import ADJECTIVES, noun_named, verb_named
from nmt.demo.grammar.phrases import Asked, Fixed, Name, NounPhrase, Prepositional, Than, There
from nmt.demo.grammar.sentences import Connector, Linked, Sentence
from nmt.demo.grammar.states import IT
from nmt.demo.grammar.verbgroup import CAN, LIKE_TO, Modal, VerbGroup

ADJECTIVE = {word.english: word for word in ADJECTIVES}
ANNA, PETER, BERLIN = Name("Anna", "Anna", True), Name("Peter", "Peter"), Name("Berlin", "Berlin")
YESTERDAY = Part(Role.TIME, Fixed("yesterday", "gestern"))
NOW = Part(Role.NOW, Fixed("right now", "gerade"))


def np(determiner: Determiner, noun: str, plural: bool = False, adjective: str = "") -> NounPhrase:
    return NounPhrase(determiner, noun_named(noun), plural, ADJECTIVE.get(adjective))


def does(verb: str, tense: Tense = Tense.PRESENT, modal: Modal | None = None, negated: bool = False) -> VerbGroup:
    return VerbGroup(verb_named(verb), tense, modal, negated)


def obj(phrase: NounPhrase) -> Part:
    return Part(Role.OBJECT, phrase)


def to_whom(phrase: NounPhrase | Name) -> Part:
    return Part(Role.RECIPIENT, phrase, Case.DATIVE)


def place(english: str, german: str, case: Case, noun: str, role: Role = Role.PLACE) -> Part:
    return Part(role, Prepositional(english, german, case, np(THE, noun)))


TEACHER, BOOK, CHILDREN = np(THE, "teacher"), np(THE, "book"), np(THE, "child", True)
TIRED = Part(Role.PREDICATE, Fixed("tired", "müde"))
HOME = Part(Role.DIRECTION, Fixed("home", "nach Hause"))

STATEMENTS = [
    (
        Clause(SHE, does("visit"), (obj(np(MY, "aunt")), Part(Role.FREQUENCY, Fixed("never", "nie")))),
        "She never visits my aunt.",
        "Sie besucht meine Tante nie.",
    ),
    (
        Clause(TEACHER, does("read", Tense.PAST), (obj(BOOK), YESTERDAY)),
        "The teacher read the book yesterday.",
        "Der Lehrer hat gestern das Buch gelesen.",
    ),
    (
        Clause(TEACHER, does("read", Tense.PAST, negated=True), (obj(BOOK), YESTERDAY)),
        "The teacher did not read the book yesterday.",
        "Der Lehrer hat das Buch gestern nicht gelesen.",
    ),
    (
        Clause(SHE, does("open", Tense.PROGRESSIVE), (obj(np(THE, "window")), NOW)),
        "She is opening the window right now.",
        "Sie macht gerade das Fenster auf.",
    ),
    (
        Clause(HE, does("give", Tense.PERFECT), (to_whom(np(THE, "student")), obj(np(A, "key")))),
        "He has given the student a key.",
        "Er hat dem Studenten einen Schlüssel gegeben.",
    ),
    (
        Clause(PETER, does("explain", Tense.FUTURE), (Part(Role.SHIFTED, CHILDREN, Case.DATIVE), obj(np(THE, "rule")))),
        "Peter will explain the rule to the children.",
        "Peter wird den Kindern die Regel erklären.",
    ),
    (
        Clause(CHILDREN, does("play", modal=LIKE_TO), (place("in", "in", Case.DATIVE, "park"),)),
        "The children like to play in the park.",
        "Die Kinder spielen gern im Park.",
    ),
    (
        Clause(SHE, does("rest", Tense.PAST), (place("in", "in", Case.DATIVE, "garden"),), YESTERDAY),
        "Yesterday she rested in the garden.",
        "Gestern hat sie sich im Garten ausgeruht.",
    ),
    (
        Clause(TEACHER, does("hurry", Tense.PAST), (), YESTERDAY),
        "Yesterday the teacher hurried.",
        "Gestern hat sich der Lehrer beeilt.",
    ),
    (
        Clause(
            np(THE, "driver"),
            does("wait", Tense.PAST),
            (
                Part(Role.OBLIQUE, Prepositional("for", "auf", Case.ACCUSATIVE, np(THE, "bus"))),
                Part(Role.MANNER, Fixed("patiently", "geduldig")),
                place("at", "an", Case.DATIVE, "station"),
            ),
        ),
        "The driver waited patiently for the bus at the station.",
        "Der Fahrer hat geduldig am Bahnhof auf den Bus gewartet.",
    ),
    (
        Clause(
            There(True),
            VerbGroup(lexicon.EXIST),
            (obj(np(NUMERALS[1], "museum", True)),),
            Part(Role.PLACE, Prepositional("in", "in", Case.DATIVE, np(THIS, "city"))),
        ),
        "In this city there are three museums.",
        "In dieser Stadt gibt es drei Museen.",
    ),
    (
        Clause(IT, VerbGroup(lexicon.RAIN, Tense.PROGRESSIVE)),
        "It is raining.",
        "Es regnet.",
    ),
    (
        Clause(
            PETER,
            does("live", Tense.SINCE),
            (
                Part(Role.DIRECTION, Prepositional("in", "in", Case.DATIVE, BERLIN)),
                Part(Role.TIME, Fixed("for three years", "seit drei Jahren")),
            ),
        ),
        "Peter has been living in Berlin for three years.",
        "Peter wohnt seit drei Jahren in Berlin.",
    ),
    (
        Clause(HE, does("repair", Tense.PAST), (obj(NounPhrase(THE, noun_named("car"), possessor=np(MY, "brother"))),)),
        "He repaired my brother's car.",
        "Er hat das Auto meines Bruders repariert.",
    ),
    (
        Clause(THEY, does("pick up", Tense.PAST), (Part(Role.OBJECT, HE), YESTERDAY)),
        "They picked him up yesterday.",
        "Sie haben ihn gestern abgeholt.",
    ),
    (
        Clause(
            ANNA,
            does("sell", Tense.PERFECT, negated=True),
            (obj(np(NOT_A, "sofa")), Part(Role.YET, Fixed("yet", "noch"))),
        ),
        "Anna has not sold a sofa yet.",
        "Anna hat noch kein Sofa verkauft.",
    ),
    (
        Clause(
            np(MANY, "child", True),
            does("drink"),
            (obj(np(BARE, "milk", adjective="cold")), Part(Role.FREQUENCY, Fixed("often", "oft"))),
        ),
        "Many children often drink cold milk.",
        "Viele Kinder trinken oft kalte Milch.",
    ),
    (
        Clause(
            np(THE, "bridge"),
            VerbGroup(verb_named("build"), Tense.PASSIVE),
            (Part(Role.TIME, Fixed("in 1987", "im Jahr 1987")),),
        ),
        "The bridge was built in 1987.",
        "Die Brücke wurde im Jahr 1987 gebaut.",
    ),
]

LINKED = [
    (
        Linked(
            Clause(TEACHER, does("come", Tense.PAST), (HOME,)),
            Connector.BECAUSE,
            Clause(HE, does("be", Tense.PAST), (TIRED,)),
        ),
        "The teacher came home because he was tired.",
        "Der Lehrer ist nach Hause gekommen, weil er müde war.",
    ),
    (
        Linked(
            Clause(SHE, does("believe")),
            Connector.THAT,
            Clause(PETER, does("open", Tense.PERFECT), (obj(np(THE, "door")),)),
        ),
        "She believes that Peter has opened the door.",
        "Sie glaubt, dass Peter die Tür aufgemacht hat.",
    ),
    (
        Linked(Clause(HE, does("try", Tense.PAST)), Connector.TO, Clause(HE, does("open"), (obj(np(THE, "door")),))),
        "He tried to open the door.",
        "Er hat versucht, die Tür aufzumachen.",
    ),
    (
        Linked(
            Clause(SHE, does("go", Tense.PAST), (place("to", "in", Case.ACCUSATIVE, "library", Role.DIRECTION),)),
            Connector.IN_ORDER_TO,
            Clause(SHE, does("read"), (obj(np(A, "newspaper")),)),
        ),
        "She went to the library to read a newspaper.",
        "Sie ist in die Bibliothek gegangen, um eine Zeitung zu lesen.",
    ),
    (
        Linked(Clause(PETER, does("sleep", Tense.FUTURE)), Connector.IF, Clause(IT, VerbGroup(lexicon.RAIN)), True),
        "If it rains, Peter will sleep.",
        "Wenn es regnet, wird Peter schlafen.",
    ),
    (
        Linked(Clause(ANNA, does("sing", Tense.PAST)), Connector.AND, Clause(PETER, does("dance", Tense.PAST))),
        "Anna sang and Peter danced.",
        "Anna hat gesungen und Peter hat getanzt.",
    ),
]

QUESTIONS = [
    (
        Clause(TEACHER, does("know"), (Part(Role.OBJECT, np(OUR, "mother")),)),
        "Does the teacher know our mother?",
        "Kennt der Lehrer unsere Mutter?",
    ),
    (
        Clause(ANNA, does("open", modal=CAN), (obj(np(THE, "bottle")),)),
        "Can Anna open the bottle?",
        "Kann Anna die Flasche aufmachen?",
    ),
    (
        Clause(Asked(Agreement(3, False), True, False), does("buy", Tense.PAST), (obj(np(THE, "house")),)),
        "Who bought the house?",
        "Wer hat das Haus gekauft?",
    ),
    (
        Clause(HE, does("buy", Tense.PAST), (), Part(Role.OBJECT, Asked(Agreement(3, False), False, False))),
        "What did he buy?",
        "Was hat er gekauft?",
    ),
    (
        Clause(PETER, does("read", Tense.PERFECT), (), Part(Role.OBJECT, np(WHICH, "novel"))),
        "Which novel has Peter read?",
        "Welchen Roman hat Peter gelesen?",
    ),
]


@pytest.mark.parametrize(("body", "english", "german"), [*STATEMENTS, *LINKED])
def test_statements(body: Clause | Linked, english: str, german: str) -> None:
    assert (Sentence(body).english(), Sentence(body).german()) == (english, german)


@pytest.mark.parametrize(("body", "english", "german"), QUESTIONS)
def test_questions(body: Clause, english: str, german: str) -> None:
    sentence = Sentence(body, question=True)
    assert (sentence.english(), sentence.german()) == (english, german)


def relative(noun: str, plural: bool, clause: Clause) -> NounPhrase:
    return NounPhrase(THE, noun_named(noun), plural, None, None, clause)


def test_a_relative_clause_stays_with_its_subject() -> None:
    man = np(THE, "man")
    who = Asked(man.agreement, True, True)
    clause = Clause(who, does("buy", Tense.PAST), (obj(np(THE, "car")),))
    sentence = Sentence(Clause(relative("man", False, clause), does("have"), (obj(np(HIS, "key")),)))
    assert sentence.english() == "The man who bought the car has his key."
    assert sentence.german() == "Der Mann, der das Auto gekauft hat, hat seinen Schlüssel."


def test_a_relative_clause_of_an_object_follows_the_verb() -> None:
    books = np(THE, "book", True)
    clause = Clause(ANNA, does("buy", Tense.PAST), (), Part(Role.OBJECT, Asked(books.agreement, False, True)))
    sentence = Sentence(Clause(HE, does("read", Tense.PERFECT), (obj(relative("book", True, clause)),)))
    assert sentence.english() == "He has read the books that Anna bought."
    assert sentence.german() == "Er hat die Bücher gelesen, die Anna gekauft hat."


def test_a_relative_pronoun_takes_the_case_of_its_clause() -> None:
    clause = Clause(
        ANNA, does("help", Tense.PAST), (), Part(Role.RECIPIENT, Asked(CHILDREN.agreement, True, True), Case.DATIVE)
    )
    sentence = Sentence(Clause(relative("child", True, clause), does("sleep")))
    assert sentence.english() == "The children whom Anna helped sleep."
    assert sentence.german() == "Die Kinder, denen Anna geholfen hat, schlafen."


def test_standard_of_comparison_follows_the_german_verb() -> None:
    parts = (
        Part(Role.PREDICATE, Fixed("older", "älter")),
        Part(Role.STANDARD, Than(np(THE, "church")), Case.NOMINATIVE),
    )
    clause = Clause(np(THE, "castle"), does("be"), parts)
    assert Sentence(clause).german() == "Das Schloss ist älter als die Kirche."
    claim = Sentence(Linked(Clause(SHE, does("say")), Connector.THAT, clause))
    assert claim.english() == "She says that the castle is older than the church."
    assert claim.german() == "Sie sagt, dass das Schloss älter ist als die Kirche."
