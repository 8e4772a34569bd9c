"""Clauses: a subject, a verb group and parts, in the word order of each language."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from nmt.grammar import english, german
from nmt.grammar.determiners import HOW_MANY, NO, NOT_A, WHICH
from nmt.grammar.features import Agreement, Case, Order
from nmt.grammar.phrases import Nominal, NounPhrase, Owned, Phrase, Prepositional, RelativeClause, words
from nmt.grammar.pronouns import Asked, There
from nmt.grammar.verbgroup import LIKE_TO, VerbGroup


class Role(Enum):
    """The function of a part in its clause. The order of the members is the English word order."""

    FREQUENCY = "frequency"
    ALREADY = "already"
    RECIPIENT = "recipient"
    OBJECT = "object"
    SHIFTED = "shifted"
    """A recipient that English places after the object, with `to`."""
    PREDICATE = "predicate"
    STANDARD = "standard"
    """The standard of a comparison, which German places after the verb."""
    MANNER = "manner"
    OBLIQUE = "oblique"
    DIRECTION = "direction"
    COMPANION = "companion"
    PLACE = "place"
    TIME = "time"
    NOW = "now"
    YET = "yet"
    COMMENT = "comment"


ENGLISH_RANK = {role: rank for rank, role in enumerate(Role)}
BEFORE_MAIN_VERB = (Role.FREQUENCY, Role.ALREADY)
RECIPIENTS = (Role.RECIPIENT, Role.SHIFTED)
SEPARABLE_PARTICLES = ("up", "off", "on", "away", "along")
"""English particles that follow a pronoun object: picked him up."""

SUBJECT_PRONOUN, REFLEXIVE, SUBJECT, UNKNOWN_SUBJECT = 1, 2, 3, 7
LIKE, NEGATION = 45, 80
GERMAN_RANK = {
    Role.FREQUENCY: 25,
    Role.NOW: 10,
    Role.TIME: 20,
    Role.RECIPIENT: 30,
    Role.SHIFTED: 30,
    Role.OBJECT: 40,
    Role.MANNER: 50,
    Role.COMPANION: 60,
    Role.PLACE: 70,
    Role.ALREADY: 79,
    Role.YET: 79,
    Role.OBLIQUE: 100,
    Role.DIRECTION: 110,
    Role.PREDICATE: 120,
    Role.COMMENT: 10,
}
"""German word order: time, manner, place; known before unknown; parts that belong to the verb last."""
KNOWN_BEFORE_TIME = {Role.RECIPIENT: 15, Role.SHIFTED: 15, Role.OBJECT: 16}
"""Ranks of known objects in clauses with nicht, schon or oft: er hat das Buch gestern nicht gelesen."""
UNKNOWN_OBJECT = 90
FOCUS = (Role.FREQUENCY, Role.ALREADY, Role.YET)


@dataclass(frozen=True, slots=True)
class Part:
    """A phrase in its role; `case` is the German case that the verb requires."""

    role: Role
    phrase: Phrase
    case: Case = Case.ACCUSATIVE

    def english(self) -> str:
        """Return the phrase in English."""
        text = self.phrase.english(Case.ACCUSATIVE if self.role is not Role.PREDICATE else Case.NOMINATIVE)
        return f"to {text}" if self.role is Role.SHIFTED else text

    def german(self) -> str:
        """Return the phrase in German, without its relative clause."""
        return self.phrase.german(self.case)


def noun_phrase(phrase: Phrase) -> NounPhrase | Owned | None:
    """Return the noun phrase in a phrase, if there is one."""
    inner = phrase.nominal if isinstance(phrase, Prepositional) else phrase
    return inner if isinstance(inner, NounPhrase | Owned) else None


def relative_of(phrase: Phrase) -> RelativeClause | None:
    """Return the relative clause that modifies a phrase, if there is one."""
    inner = noun_phrase(phrase)
    return inner.relative if inner else None


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that renders as a main clause, question, subordinate clause, relative clause or infinitive."""

    subject: Nominal
    group: VerbGroup
    parts: tuple[Part, ...] = ()
    front: Part | None = None
    """The part that opens the clause in both languages: an adverbial, a question word or a relative pronoun."""

    def english(self, question: bool = False) -> str:
        """Return the clause with the English order of words."""
        agreement = self.subject.agreement
        if isinstance(self.subject, There):
            agreement = Agreement(3, self.subject.plural)
        chain = self.group.english_chain(agreement)
        inverted = question and not self.asks_for_subject
        finite, rest = chain.finite, list(chain.rest)
        adverbs = [part.english() for part in self.parts if part.role in BEFORE_MAIN_VERB]
        negation = "not" if self.group.negated else ""
        if chain.base and (inverted or negation):
            finite, rest = english.do_support(self.group.tense, agreement), [chain.base, *rest]
        operator = finite != chain.finite or not chain.base
        subject = self.subject.english(Case.NOMINATIVE)
        verb = (
            words(finite, subject * inverted, negation, *adverbs, *rest) if operator else words(*adverbs, finite, *rest)
        )
        return words(self._english_front(), "" if inverted else subject, verb, self._english_tail())

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

    def _english_front(self) -> str:
        if self.front is None:
            return ""
        return self.front.english() + ("," if self.front.role is Role.COMMENT else "")

    def _english_tail(self) -> str:
        particle = self.group.verb.particle
        parts = sorted(
            (part for part in self.parts if part.role not in BEFORE_MAIN_VERB),
            key=lambda part: ENGLISH_RANK[part.role],
        )
        first = parts[0].phrase if parts else None
        if particle in SEPARABLE_PARTICLES and first is not None and getattr(first, "light", False):
            return words(parts[0].english(), particle, *(part.english() for part in parts[1:]))
        return words(particle, *(part.english() for part in parts))

    def english_relative(self) -> str:
        """Return the clause as a relative clause."""
        return self.english()

    def english_infinitive(self) -> str:
        """Return the clause without its subject, as an infinitive with `to`."""
        return words("to", self.group.verb.english[0], self._english_tail())

    def german(self, order: Order) -> str:
        """Return the clause with the German order of words."""
        opening, closing = self.group.german_order(self.subject.agreement, order)
        middle = [text for _, text in sorted(self._middle(order), key=lambda item: item[0])]
        front = self.front.german() if self.front else ""
        if order is Order.SECOND and self.front is None:
            front = self._german_subject()
        tails = [relative_of(part.phrase) for part in self.parts]
        relatives = [f", {tail.german(Order.LAST)} ," for tail in tails if tail]
        standards = [part.german() for part in self.parts if part.role is Role.STANDARD]
        return words(front, opening, *middle, closing, *standards, *relatives)

    def _german_subject(self) -> str:
        relative = relative_of(self.subject)
        text = self.subject.german(Case.NOMINATIVE)
        return f"{text} , {relative.german(Order.LAST)} ," if relative else text

    def _middle(self, order: Order) -> Iterator[tuple[float, str]]:
        """Yield the words of the middle field, between the two parts of the German verb, each with its rank."""
        if order in (Order.FIRST, Order.LAST) or (order is Order.SECOND and self.front):
            early = self.subject.light or isinstance(self.subject, Asked)
            full = SUBJECT if self.subject.definite else UNKNOWN_SUBJECT
            yield SUBJECT_PRONOUN if early else full, self._german_subject()
        if self.group.verb.reflexive:
            agreement = self.subject.agreement
            yield REFLEXIVE, german.REFLEXIVE[agreement.person, agreement.plural]
        if self.group.modal is LIKE_TO:
            yield LIKE, "gern"
        if self.group.negated and not self._absorbs_negation:
            yield NEGATION, "nicht"
        for part in self.parts:
            if part.role is not Role.STANDARD:
                yield self._rank(part), part.german()

    @property
    def _absorbs_negation(self) -> bool:
        phrases = (noun_phrase(part.phrase) for part in self.parts if part.role is Role.OBJECT)
        return any(isinstance(phrase, NounPhrase) and phrase.determiner in (NOT_A, NO) for phrase in phrases)

    def _rank(self, part: Part) -> float:
        rank = GERMAN_RANK[part.role]
        if part.role not in (*RECIPIENTS, Role.OBJECT):
            return rank
        if getattr(part.phrase, "light", False):
            return 5 if part.role is Role.OBJECT else 6
        if part.role is Role.OBJECT and not getattr(part.phrase, "definite", True):
            return UNKNOWN_OBJECT
        focused = self.group.negated or any(other.role in FOCUS for other in self.parts)
        return KNOWN_BEFORE_TIME[part.role] if focused else rank

    def pairings(self, order: Order) -> Iterator[tuple[str, str, str]]:
        """Yield the combinations that may be held out: kind, word, and frame or second word."""
        name = self.group.verb.name
        yield "frame", name, f"{order.value} {self.group.form()}"
        for phrase in (
            self.subject,
            *(part.phrase for part in self.parts),
            *([self.front.phrase] if self.front else []),
        ):
            inner = noun_phrase(phrase)
            if inner is None:
                continue
            if inner.adjective:
                yield "adjective", inner.adjective.english, inner.noun.english
            if inner.relative:
                yield from inner.relative.pairings(Order.LAST)
        for part in self.parts:
            inner = noun_phrase(part.phrase)
            if inner and part.role is Role.OBJECT:
                yield "object", name, inner.noun.english
