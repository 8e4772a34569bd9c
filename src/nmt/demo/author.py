"""Draw random sentences of the demo language."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeVar

from nmt.demo.grammar import (
    Clause,
    Combination,
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
from nmt.demo.words import ARTICLES, PLURAL, Case, Entry, words

SENTENCES = {"statement": 44, "question": 14, "subordinate": 14, "that": 6, "infinitive": 6, "linked": 6, "state": 10}
"""Kinds of sentences, with their weights."""
MODES = {
    Mode.PAST: 40, Mode.PERFECT: 10, Mode.PROGRESSIVE: 10, Mode.FUTURE: 15, Mode.PRESENT: 12,
    Mode.MUST: 5, Mode.CAN: 5, Mode.SHOULD: 4, Mode.MAY: 3,
}  # fmt: skip
"""The modes of ordinary clauses, with their weights."""
TIMES = {
    Mode.PAST: ("past", 0.4), Mode.FUTURE: ("future", 0.5), Mode.PRESENT: ("habit", 1), Mode.PROGRESSIVE: ("now", 1),
}  # fmt: skip
"""The time adverbials of a mode, and the probability of one. The German present always has one, because English has two
tenses for it."""
FORMS = {"": "simple", "haben": "participle"}
"""The form of the German verb, by its auxiliary; with any other one it is the infinitive."""
GOVERNED = {"acc": (Case.ACCUSATIVE, Role.OBJECT), "dat": (Case.DATIVE, Role.RECIPIENT)}
T = TypeVar("T")


def modes_of(verb: Entry) -> dict[Mode, int]:
    """Return the modes in which a verb is possible, with their weights."""
    if "state" in verb.uses:
        return {Mode.PRESENT: 1, Mode.PAST: 1}
    return {mode: weight for mode, weight in MODES.items() if mode is not Mode.PROGRESSIVE or "event" not in verb.uses}


@cache
def verbs_for(mode: Mode | None) -> list[Entry]:
    """Return the verbs that are possible in a mode and take no other verb."""
    verbs = [verb for verb in words("verb") if not {"that", "zu"}.intersection(verb.uses)]
    return [verb for verb in verbs if mode is None or mode in modes_of(verb)]


def complements(verb: Entry) -> list[tuple[str, list[str]]]:
    """Return the complements of a verb: a case, perhaps with prepositions, and classes of nouns."""
    return [(case, classes.split(",")) for case, _, classes in (use.partition("=") for use in verb.uses) if classes]


def first_objects(verb: Entry) -> list[str]:
    """Return the classes of what a verb takes in the accusative, without a preposition or a person before it."""
    return next((classes for case, classes in complements(verb)[:1] if case == "acc"), [])


@cache
def nouns_of(*classes: str) -> list[Entry]:
    """Return the nouns of some classes."""
    return [noun for noun in words("noun") if noun.uses[0] in classes]


class Author:
    """Draws sentences."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.combinations: set[Combination] = set()
        """Those of the sentence that is being drawn."""

    def sentence(self) -> Sentence:
        """Draw a sentence."""
        self.combinations = set()
        mark = "."
        plain = {"statement": self._statement, "state": self._state, "that": self._that,
                 "infinitive": self._infinitive, "subordinate": self._subordinate}  # fmt: skip
        match self._weighted(SENTENCES):
            case "question":
                clause, order = self._question()
                english, german, mark = clause.english("question"), clause.german(order), "?"
            case "linked":
                clauses = self.clause(extras=1), self.clause(extras=1)
                english, german = coordinated(clauses[0], self._word("link"), clauses[1])
            case kind:
                clause = plain[kind]()
                english, german = clause.english(), clause.german(Order.SECOND)
        return Sentence(english, german, mark, frozenset(self.combinations))

    def _weighted(self, weights: dict[T, int]) -> T:
        return self.random.choices(list(weights), list(weights.values()))[0]

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _word(self, kind: str, use: str = "") -> Entry:
        return self.random.choice([word for word in words(kind) if not use or use in word.uses])

    def _statement(self) -> Clause:
        clause = self.clause(relatives=True)
        movable = [part for part in clause.parts if part[0] in (Role.TIME, Role.PLACE)]
        if not movable or self._chance(0.6):
            return clause
        return replace(clause, parts=tuple(part for part in clause.parts if part is not movable[0]), front=movable[0])

    def _state(self) -> Clause:
        """Draw a clause that says what someone or something is like."""
        adjective, (be,) = self._word("adjective"), words("copula")
        if "person" in adjective.uses and self._chance(0.5):
            subject = self._person(Case.NOMINATIVE, nouns=0)
        else:
            subject = self._noun_phrase(adjective.uses, Case.NOMINATIVE, adjectives=0)
        predicate = Role.PREDICATE, described(adjective, very=self._chance(0.3))
        return Clause(subject, be, self._weighted(modes_of(be)), (predicate,))

    def _that(self) -> Clause:
        inner = subordinate(self._word("complement"), self.clause(Order.LAST, extras=1))
        mode = self._weighted({Mode.PRESENT: 1, Mode.PAST: 1})
        return Clause(self._person(Case.NOMINATIVE), self._word("verb", "that"), mode, ((Role.CLAUSE, inner),))

    def _infinitive(self) -> Clause:
        subject, mode = self._person(Case.NOMINATIVE), self._weighted({Mode.PAST: 1, Mode.FUTURE: 1})
        inner = infinitive(self.clause(Order.ZU, mode, subject=subject, extras=1))
        return Clause(subject, self._word("verb", "zu"), mode, ((Role.CLAUSE, inner),))

    def _subordinate(self) -> Clause:
        """Draw a clause with a subordinate one after it, or before it."""
        conjunction = self._word("conjunction")
        main, other = (Mode[mode.upper()] for mode in self.random.choice(conjunction.uses).split("/"))
        inner = self.clause(Order.LAST, other, subject=self._person(Case.NOMINATIVE, nouns=0), extras=1)
        clause, placed = self.clause(mode=main, extras=1), (Role.CLAUSE, subordinate(conjunction, inner))
        if self._chance(0.4):
            return replace(clause, front=placed)
        return replace(clause, parts=(*clause.parts, placed))

    def _question(self) -> tuple[Clause, Order]:
        """Draw a question, and the order of its German words."""
        match self._weighted({"whether": 3, "who": 2, "what": 2, "when": 3}):
            case "whether":
                return self.clause(Order.FIRST, extras=1), Order.FIRST
            case "who":
                return self.clause(subject=word_phrase("WHNP", "WP", "who", "wer"), extras=1), Order.SECOND
            case "what":
                fitting = [
                    verb for verb in verbs_for(None) if first_objects(verb) and "person" not in first_objects(verb)
                ]
                asked = Role.OBJECT, word_phrase("WHNP", "WP", "what", "was")
                return self.clause(verb=self.random.choice(fitting), extras=1, front=asked), Order.SECOND
        mode, adverb = self._weighted({Mode.PAST: 3, Mode.FUTURE: 2, Mode.MUST: 1}), fixed(self._word("question"))
        return self.clause(mode=mode, extras=0, front=(Role.TIME, adverb)), Order.SECOND

    def clause(
        self,
        order: Order = Order.SECOND,
        mode: Mode | None = None,
        subject: Phrase | None = None,
        verb: Entry | None = None,
        front: Placed | None = None,
        extras: int = 2,
        relatives: bool = False,
    ) -> Clause:
        """Draw a clause in a German order, with what is not given.

        `front` opens it, and is not drawn again; adverbials are more likely with more `extras`, and nouns have relative
        clauses only with `relatives`.
        """
        verb = verb or self.random.choice(verbs_for(mode))
        mode = mode or self._weighted(modes_of(verb))
        subject = subject or self._person(Case.NOMINATIVE, relative=relatives)
        can_be_negated = mode in (Mode.PAST, Mode.FUTURE) and not front and order is not Order.ZU
        negation = object() if can_be_negated and self._chance(0.12) else None
        if order is not Order.SECOND:
            self.combinations.add(("frame", verb.english[0], f"{order.value} {FORMS.get(mode.value[1], 'infinitive')}"))
        asked = front[0] if front else None
        relatives = relatives and mode in (Mode.PAST, Mode.FUTURE)
        parts = [part for part in self._complements(verb, subject, negation, relatives) if part[0] is not asked]
        # what follows an object with a relative clause would seem to belong to that clause
        if not negation and not any(phrase.relative for _, phrase in parts):
            parts += self._adverbials(verb, mode, asked, extras)
        return Clause(subject, verb, mode, tuple(parts), front, negation)

    def _complements(self, verb: Entry, subject: Phrase, negation: object, relatives: bool) -> Iterator[Placed]:
        """Yield the objects that a verb asks for."""
        for governed, classes in complements(verb):
            *prepositions, short = governed.split("/")  # such as for/auf/acc
            case, role = GOVERNED[short]
            if "person" in classes and self._chance(0.6):
                phrase = self._person(case, than=subject)
            else:
                article = negation if governed == "acc" else None
                phrase = self._noun_phrase(classes, case, verb, article, relative=relatives)
            if prepositions:
                phrase = prepositional(prepositions[0], prepositions[1], phrase)
            yield Role.OBLIQUE if prepositions and prepositions[1] != "-" else role, phrase

    def _adverbials(self, verb: Entry, mode: Mode, asked: Role | None, extras: int) -> Iterator[Placed]:
        """Yield adverbials that suit a verb and a mode, which may need one."""
        if mode is Mode.PERFECT:
            yield Role.ALREADY, fixed(self._word("adverb", "already"))
        if "state" in verb.uses:
            return
        time, chance = TIMES.get(mode, ("future", 0.0 if mode is Mode.PERFECT else 0.2))
        if mode is Mode.PRESENT and self._chance(0.5):
            yield Role.FREQUENCY, fixed(self._word("adverb", "frequency"))
        elif asked is not Role.TIME and self._chance(chance):
            yield Role.TIME, fixed(self._word("time", time))
        if "manner" in verb.uses and self._chance(0.1 * extras):
            yield Role.MANNER, fixed(self._word("adverb", "manner"))
        if self._chance(0.05 * extras):
            yield Role.COMPANION, prepositional("with", "mit", self._noun_phrase(("person",), Case.DATIVE))
        elif not any("inside" in classes for _, classes in complements(verb)) and self._chance(0.12 * extras):
            kind, english, german = self.random.choice((("inside", "in", "in"), ("outside", "at", "an")))
            yield Role.PLACE, prepositional(english, german, self._noun_phrase((kind,), Case.DATIVE, adjectives=0))

    def _person(self, case: Case, than: Phrase | None = None, nouns: int = 5, relative: bool = False) -> Phrase:
        """Draw a person, other than the subject of the clause; `nouns` is the weight of a noun phrase."""
        kind = self._weighted({"pronoun": 3, "name": 2, "noun": nouns})
        if kind == "noun":
            return self._noun_phrase(("person", "relation"), case, relative=relative)
        if kind == "name":
            entry = self._word("name")
            return word_phrase("NP", "NNP", *entry.english, *entry.german)
        pronouns = words("pronoun")
        if than:  # them and her would be the same in German
            pronouns = tuple(each for each in pronouns[:-1] if than.person == 3 or int(each.uses[0]) != than.person)
        return pronoun(self.random.choice(pronouns), case)

    def _noun_phrase(
        self,
        classes: Sequence[str],
        case: Case,
        verb: Entry | None = None,
        negation: object = None,
        adjectives: float = 0.3,
        relative: bool = False,
    ) -> Phrase:
        """Draw a noun phrase; `verb` is the one whose object it is, and `adjectives` the probability of one."""
        noun = self.random.choice(nouns_of(*classes))
        if verb:
            self.combinations.add(("object", verb.english[0], noun.english[0]))
        determiner = self._determiner(noun, negation)
        plural = determiner is not None and self._is_plural(noun, determiner)
        fitting = [each for each in words("adjective") if noun.uses[0] in each.uses]
        adjective = self.random.choice(fitting) if fitting and self._chance(adjectives) else None
        if adjective:
            self.combinations.add(("adjective", adjective.english[0], noun.english[0]))
        kein = negation if determiner and "negated" in determiner.uses else None
        phrase = noun_phrase(noun, determiner, plural, case, adjective, kein)
        return self._with_relative(phrase, noun) if relative and self._chance(0.12) else phrase

    def _determiner(self, noun: Entry, negation: object) -> Entry | None:
        """Draw a determiner that suits a noun; None for a mass such as water."""
        every, kind = words("determiner"), noun.uses[0]
        if kind == "relation":
            return self._word("determiner", "owner")
        if kind == "drink":
            return self.random.choice((None, every[0]))
        if kind in ("inside", "outside"):
            return every[0]
        if negation and self._chance(0.6):
            return self._word("determiner", "negated")
        if self._chance(0.65):
            return self._word("determiner", "common")
        barred = {"negated", "owner"} if kind == "person" else {"negated"}
        return self.random.choice([each for each in every if barred.isdisjoint(each.uses)])

    def _is_plural(self, noun: Entry, determiner: Entry) -> bool:
        singular, plural = determiner.english
        can_be_plural = plural != "-" and noun.uses[0] not in ("relation", "inside", "outside", "drink")
        return singular == "-" or (can_be_plural and self._chance(0.25))

    def _with_relative(self, phrase: Phrase, noun: Entry) -> Phrase:
        """Add a relative clause: a person is its subject, and a thing its object."""
        gender = PLURAL if phrase.plural else noun.german[0]
        if noun.uses[0] in ("person", "relation"):
            who = replace(word_phrase("WHNP", "WP", "who", ARTICLES[gender][Case.NOMINATIVE]), plural=phrase.plural)
            return related(phrase, self.clause(Order.LAST, Mode.PAST, who, extras=1))
        verbs = [verb for verb in verbs_for(Mode.PAST) if noun.uses[0] in first_objects(verb)]
        if not verbs:
            return phrase
        verb = self.random.choice(verbs)
        self.combinations.add(("object", verb.english[0], noun.english[0]))
        that = Role.OBJECT, word_phrase("WHNP", "WDT", "that", ARTICLES[gender][Case.ACCUSATIVE])
        subject = self._person(Case.NOMINATIVE, nouns=0)
        return related(phrase, self.clause(Order.LAST, Mode.PAST, subject, verb, that, extras=0))
