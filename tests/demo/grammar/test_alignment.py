"""The words of the demo language's sentences are linked as a person would link them."""

from random import Random

import pytest

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.alignment import true_alignment
from nmt.demo.grammar.choosing import HE
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import HIS, MY, NOT_A, THE, A
from nmt.demo.grammar.discourse import Author
from nmt.demo.grammar.features import Case, Tense
from nmt.demo.grammar.lexicon import NOUNS, Adjective, Adverb
from nmt.demo.grammar.phrases import Fixed, NounPhrase
from nmt.demo.grammar.sentences import Connector, Linked, Sentence
from nmt.demo.grammar.verbgroup import CAN, HAVE_TO
from tests.demo.grammar.test_clauses import ANNA, HOME, TEACHER, YESTERDAY, does, np, obj, place

PAST = Tense.PAST
READ = does("read", PAST)
BY_HAND = [
    (Clause(TEACHER, READ, (obj(np(THE, "book", adjective="old")), YESTERDAY)),
     "The teacher read the old book yesterday.", "Der Lehrer hat gestern das alte Buch gelesen.",
     "0-0 1-1 2p2 2-7 3-4 4-5 5-6 6-3"),
    (Clause(ANNA, does("open", Tense.PROGRESSIVE), (obj(np(THE, "window")),)),
     "Anna is opening the window.", "Anna macht das Fenster auf.", "0-0 1p1 1p4 2-1 2p4 3-2 4-3"),
    (Clause(HE, does("have", negated=True), (obj(np(NOT_A, "dog")),)),
     "He does not have a dog.", "Er hat keinen Hund.", "0-0 1p1 2-2 3-1 4-2 5-3"),
    (Clause(ANNA, does("go", modal=CAN, negated=True), (place("to", "zu", Case.DATIVE, "school"),)),
     "Anna cannot go to the school.", "Anna kann zur Schule nicht gehen.", "0-0 1-1 1-4 2-5 3-2 4-2 5-3"),
    (Clause(HE, does("rest", PAST), (place("in", "in", Case.DATIVE, "garden"),)),
     "He rested in the garden.", "Er hat sich im Garten ausgeruht.", "0-0 1p1 1p2 1-5 2-3 3-3 4-4"),
    (Clause(NounPhrase(THE, np(A, "car").noun, possessor=np(MY, "mother")), does("belong to"),
            (Part(Role.RECIPIENT, ANNA, Case.DATIVE),)),
     "My mother's car belongs to Anna.", "Das Auto meiner Mutter gehört Anna.", "0-2 1-3 2p0 2-1 3-4 4p4 5-5"),
    (Linked(Clause(HE, does("drive", Tense.FUTURE), (HOME,), Part(Role.COMMENT, Fixed("of course", "natürlich"))),
            Connector.IN_ORDER_TO, Clause(HE, does("open"), (obj(np(HIS, "window")),))),
     "Of course, he will drive home to open his window.",
     "Natürlich wird er nach Hause fahren, um sein Fenster aufzumachen.",
     "0p0 1p0 2-2 3-1 4-5 5p3 5p4 6p6 6-9 7-9 8-7 9-8"),
    (Clause(HE, does("go", modal=HAVE_TO), (Part(Role.TIME, Fixed("two days ago", "vor zwei Tagen", (2, 0, 1))),)),
     "He has to go two days ago.", "Er muss vor zwei Tagen gehen.", "0-0 1-1 2p1 3-5 4-3 5-4 6-2"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "english", "german", "expected"), BY_HAND)
def test_links_are_those_written_by_hand(body: Clause | Linked, english: str, german: str, expected: str) -> None:
    sentence = Sentence(body)
    assert (sentence.english(), sentence.german()) == (english, german)
    found = true_alignment(sentence)
    marks = {link: "-" if link in found.sure else "p" for link in found.possible}
    assert " ".join(f"{i}{marks[i, j]}{j}" for i, j in sorted(marks)) == expected


def sentences(count: int) -> list[Sentence]:
    author = Author(Random(3))
    return [author.sentence() for _ in range(count)]


def test_every_word_has_a_link_and_every_link_has_words() -> None:
    for sentence in sentences(300):
        words, found = (sentence.english().split(), sentence.german().split()), true_alignment(sentence)
        for side in (0, 1):
            assert {link[side] for link in found.possible} == set(range(len(words[side]))), words
        assert found.sure <= found.possible


def test_sure_links_join_words_that_the_lexicon_translates() -> None:
    """Only words of one entry, and the first two letters, which German inflection keeps."""
    meanings: dict[str, set[str]] = {}
    for noun in NOUNS:
        for form, translation in ((noun.english, noun.german), (noun.english_plural, noun.german_plural)):
            meanings.setdefault(form, set()).add(translation)
    words: list[Adjective | Adverb] = [*lexicon.ADJECTIVES, *lexicon.FREQUENCY, *lexicon.NUMBER]
    for word in (*words, *lexicon.MANNER.values()):
        meanings.setdefault(word.english, set()).add(word.german)
    for form in (form for verb in lexicon.VERBS for form in verb.english):
        meanings.pop(form, None)  # the water, to water
    checked = 0
    for sentence in sentences(300):
        english, german = (
            text.rstrip(".?").replace(",", "").split() for text in (sentence.english(), sentence.german())
        )
        for i, j in true_alignment(sentence).sure:
            found = meanings.get(english[i], set())
            if len(found) == 1:
                (translation,) = found
                assert german[j].lower().startswith(translation[:2].lower()), (english[i], german[j])
                checked += 1
    assert checked > 500
