"""Clauses: a subject, a verb group and parts, in the word order of each language."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from nmt.demo.grammar import german
from nmt.demo.grammar.determiners import HOW_MANY, NO, NOT_A, WHICH
from nmt.demo.grammar.features import Agreement, Case, Language, Order
from nmt.demo.grammar.phrases import Asked, Nominal, NounPhrase, Phrase, Prepositional, There
from nmt.demo.grammar.verbgroup import LIKE_TO, VerbGroup
from nmt.demo.grammar.words import COMMA, Word, Words


class Role(Enum):
    """The function of a part in its clause, with its ranks in the word order of English and of German.

    German order: time, manner, place; known before unknown; parts that belong to the verb last.
    """

    FREQUENCY = 1, 25
    ALREADY = 2, 79
    RECIPIENT = 3, 30
    OBJECT = 4, 40
    SHIFTED = 5, 30
    """A recipient that English places after the object, with `to`."""
    PREDICATE = 6, 120
    STANDARD = 7, 200
    """The standard of a comparison, which German places after the verb."""
    MANNER = 8, 50
    OBLIQUE = 9, 100
    DIRECTION = 10, 110
    COMPANION = 11, 60
    PLACE = 12, 70
    TIME = 13, 20
    NOW = 14, 10
    YET = 15, 79
    COMMENT = 16, 10

    def __init__(self, english_rank: int, german_rank: int) -> None:
        self.english_rank, self.german_rank = english_rank, german_rank


BEFORE_MAIN_VERB = (Role.FREQUENCY, Role.ALREADY)
SEPARABLE_PARTICLES = ("up", "off", "on", "away", "along")
"""English particles that follow a pronoun object: picked him up."""
SUBJECT_PRONOUN, REFLEXIVE, SUBJECT, PRONOUN_OBJECT, PRONOUN_RECIPIENT, UNKNOWN_SUBJECT = 1, 2, 3, 5, 6, 7
LIKE, NEGATION, UNKNOWN_OBJECT = 45, 80, 90
KNOWN_BEFORE_TIME = {Role.RECIPIENT: 15, Role.SHIFTED: 15, Role.OBJECT: 16}
"""Ranks of known objects in clauses with nicht, schon or oft: er hat das Buch gestern nicht gelesen."""
FOCUS = (Role.FREQUENCY, Role.ALREADY, Role.YET)


@dataclass(frozen=True, slots=True)
class Part:
    """A phrase in its role; `case` is the German case that the verb requires."""

    role: Role
    phrase: Phrase
    case: Case = Case.ACCUSATIVE

    def english(self, at: str = "") -> Words:
        """Return the phrase in English."""
        case = Case.NOMINATIVE if self.role is Role.PREDICATE else Case.ACCUSATIVE
        words = self.phrase.render(Language.ENGLISH, case, at)
        return (Word("to", (), f"{at}head"), *words) if self.role is Role.SHIFTED else words

    def german(self, at: str = "") -> Words:
        """Return the phrase in German, without its relative clause."""
        return self.phrase.render(Language.GERMAN, self.case, at)


NamedPart = tuple[str, Part]
"""The path of a part, with a dot at its end, and the part."""


def noun_phrase(phrase: Phrase) -> NounPhrase | None:
    """Return the noun phrase in a phrase, if there is one."""
    inner = phrase.nominal if isinstance(phrase, Prepositional) else phrase
    return inner if isinstance(inner, NounPhrase) else None


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that renders as a main clause, question, subordinate clause, relative clause or infinitive."""

    subject: Nominal
    group: VerbGroup
    parts: tuple[Part, ...] = ()
    front: Part | None = None
    """The part that opens the clause in both languages: an adverbial, a question word or a relative pronoun."""

    def english(self, at: str = "", question: bool = False) -> Words:
        """Return the clause with the English order of words; `at` is its path, with a dot at its end."""
        inverted = question and not self.asks_for_subject
        forms, operator = self.group.english_forms(self.english_agreement, inverted)
        finite, *rest = self.group.english_words(forms, at)
        adverbs = _english(named for named in self._named_parts(at) if named[1].role in BEFORE_MAIN_VERB)
        negation = (Word("not", (f"{at}negation",), f"{at}verb"),) if self.group.negated else ()
        subject = self.subject.render(Language.ENGLISH, Case.NOMINATIVE, f"{at}subject.")
        verb = (finite, *subject * inverted, *negation, *adverbs, *rest) if operator else (*adverbs, finite, *rest)
        front = self.front.english(f"{at}front.") if self.front else ()
        comma = (COMMA,) if self.front and self.front.role is Role.COMMENT else ()
        return (*front, *comma, *subject * (not inverted), *verb, *self._english_tail(at))

    @property
    def english_agreement(self) -> Agreement:
        """The agreement of the English verb."""
        return Agreement(3, self.subject.plural) if isinstance(self.subject, There) else self.subject.agreement

    def _named_parts(self, at: str) -> Iterator[NamedPart]:
        return ((f"{at}part{index}.", part) for index, part in enumerate(self.parts))

    @property
    def asks_for_subject(self) -> bool:
        """Whether the question is about the subject, so that English does not invert it."""
        return isinstance(self.subject, Asked) or (
            isinstance(self.subject, NounPhrase) and self.subject.determiner in (WHICH, HOW_MANY)
        )

    @property
    def asks(self) -> bool:
        """Whether a question word opens the clause, so that the German verb stays second."""
        return self.front is not None or self.asks_for_subject

    def _english_tail(self, at: str) -> Words:
        particle = tuple(Word(word, (), f"{at}verb") for word in self.group.verb.particle.split())
        later = (named for named in self._named_parts(at) if named[1].role not in BEFORE_MAIN_VERB)
        parts = sorted(later, key=lambda named: named[1].role.english_rank)
        separates = self.group.verb.particle in SEPARABLE_PARTICLES and parts and parts[0][1].phrase.light
        before = 1 if separates else 0
        return (*_english(parts[:before]), *particle, *_english(parts[before:]))

    def english_infinitive(self, at: str = "") -> Words:
        """Return the clause without its subject, as an infinitive with `to`."""
        to, verb = Word("to", (f"{at}to",), f"{at}verb"), Word(self.group.verb.english[0], (f"{at}verb",))
        return (to, verb, *self._english_tail(at))

    def german(self, order: Order, at: str = "") -> Words:
        """Return the clause with the German order of words; `at` is its path, with a dot at its end."""
        opening, closing = self.group.german_order(self.subject.agreement, order, at)
        middle = [words for _, words in sorted(self._middle(order, at), key=lambda item: item[0])]
        front = self.front.german(f"{at}front.") if self.front else ()
        if order is Order.SECOND and self.front is None:
            front = self._german_subject(at)
        relatives = [_german_relative(part.phrase, path) for path, part in self._named_parts(at)]
        standards = [part.german(path) for path, part in self._named_parts(at) if part.role is Role.STANDARD]
        return (*front, *opening, *chain(*middle), *closing, *chain(*standards, *relatives))

    def _german_subject(self, at: str) -> Words:
        path = f"{at}subject."
        return (*self.subject.render(Language.GERMAN, Case.NOMINATIVE, path), *_german_relative(self.subject, path))

    def _middle(self, order: Order, at: str) -> Iterator[tuple[int, Words]]:
        """Yield the words of the middle field, between the two parts of the German verb, each with its rank."""
        if order in (Order.FIRST, Order.LAST) or (order is Order.SECOND and self.front):
            early = self.subject.light or isinstance(self.subject, Asked)
            full = SUBJECT if self.subject.definite else UNKNOWN_SUBJECT
            yield SUBJECT_PRONOUN if early else full, self._german_subject(at)
        if "sich" in self.group.verb.flags:
            agreement = self.subject.agreement
            reflexive = german.REFLEXIVE.get((agreement.person, agreement.plural), "sich")
            yield REFLEXIVE, (Word(reflexive, (), f"{at}verb"),)
        if self.group.modal is LIKE_TO:
            yield LIKE, (Word("gern", (f"{at}modal",)),)
        if self.group.negated and not any(map(_absorbs_negation, self.parts)):
            yield NEGATION, (Word("nicht", (f"{at}negation",)),)
        for path, part in self._named_parts(at):
            if self.group.negated and _absorbs_negation(part):
                first, *rest = part.german(path)  # kein
                yield self._rank(part), (first._replace(expresses=(*first.expresses, f"{at}negation")), *rest)
            elif part.role is not Role.STANDARD:
                yield self._rank(part), part.german(path)

    def _rank(self, part: Part) -> int:
        if part.role not in KNOWN_BEFORE_TIME:
            return part.role.german_rank
        if part.phrase.light:
            return PRONOUN_OBJECT if part.role is Role.OBJECT else PRONOUN_RECIPIENT
        if part.role is Role.OBJECT and not part.phrase.definite:
            return UNKNOWN_OBJECT
        focused = self.group.negated or any(other.role in FOCUS for other in self.parts)
        return KNOWN_BEFORE_TIME[part.role] if focused else part.role.german_rank

    def pairings(self, order: Order) -> Iterator[tuple[str, str, str]]:
        """Yield the combinations that may be held out: kind, word, and frame or second word."""
        name = self.group.verb.name
        yield "frame", name, f"{order.value} {self.group.form()}"
        parts = (*self.parts, self.front) if self.front else self.parts
        for inner in map(noun_phrase, (self.subject, *(part.phrase for part in parts))):
            if inner and inner.adjective:
                yield "adjective", inner.adjective.english, inner.noun.english
            if inner and inner.relative:
                yield from inner.relative.pairings(Order.LAST)
        for part in self.parts:
            inner = noun_phrase(part.phrase)
            if inner and part.role is Role.OBJECT:
                yield "object", name, inner.noun.english


def _english(parts: Iterable[NamedPart]) -> Words:
    """Return parts in English, one after the other."""
    return tuple(chain.from_iterable(part.english(path) for path, part in parts))


def _german_relative(phrase: Phrase, path: str) -> Words:
    """Return the relative clause that modifies a phrase, between commas; nothing if there is none."""
    inner = noun_phrase(phrase)
    if inner is None or inner.relative is None:
        return ()
    return (COMMA, *inner.relative.german(Order.LAST, f"{path}relative."), COMMA)


def _absorbs_negation(part: Part) -> bool:
    """Return whether the article of an object expresses the negation of the clause."""
    phrase = noun_phrase(part.phrase) if part.role is Role.OBJECT else None
    return phrase is not None and phrase.determiner in (NOT_A, NO)
