"""Clauses: a subject, a verb group and parts, in the word order of each language."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from nmt.features.demo.grammar import english, german
from nmt.features.demo.grammar.determiners import HOW_MANY, NO, NOT_A, WHICH
from nmt.features.demo.grammar.features import Agreement, Case, Order
from nmt.features.demo.grammar.phrases import Nominal, NounPhrase, Owned, Phrase, Prepositional, RelativeClause
from nmt.features.demo.grammar.pronouns import Asked, There
from nmt.features.demo.grammar.verbgroup import LIKE_TO, VerbGroup
from nmt.features.demo.grammar.words import COMMA, Word, Words


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

    def english(self, at: str = "") -> Words:
        """Return the phrase in English."""
        words = self.phrase.english(Case.ACCUSATIVE if self.role is not Role.PREDICATE else Case.NOMINATIVE, at)
        return (Word("to", (), f"{at}head"), *words) if self.role is Role.SHIFTED else words

    def german(self, at: str = "") -> Words:
        """Return the phrase in German, without its relative clause."""
        return self.phrase.german(self.case, at)


NamedPart = tuple[str, Part]
"""The path of a part, with a dot at its end, and the part."""


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

    def english(self, at: str = "", question: bool = False) -> Words:
        """Return the clause with the English order of words; `at` is its path, with a dot at its end."""
        agreement = self.subject.agreement
        if isinstance(self.subject, There):
            agreement = Agreement(3, self.subject.plural)
        verbs = self.group.english_chain(agreement)
        inverted = question and not self.asks_for_subject
        forms = [verbs.finite, *verbs.rest]
        supported = bool(verbs.base) and (inverted or self.group.negated)
        if supported:
            forms = [english.do_support(self.group.tense, agreement), verbs.base, *verbs.rest]
        finite, *rest = self.group.name_english(forms, supported, at)
        adverbs = _english(named for named in self._named_parts(at) if named[1].role in BEFORE_MAIN_VERB)
        negation = (Word("not", (f"{at}negation",), f"{at}verb"),) if self.group.negated else ()
        subject = self.subject.english(Case.NOMINATIVE, f"{at}subject.")
        operator = forms[0] != verbs.finite or not verbs.base
        verb = (finite, *subject * inverted, *negation, *adverbs, *rest) if operator else (*adverbs, finite, *rest)
        return (*self._english_front(at), *subject * (not inverted), *verb, *self._english_tail(at))

    def _named_parts(self, at: str) -> Iterator[NamedPart]:
        """Yield each part with its path."""
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

    def _english_front(self, at: str) -> Words:
        if self.front is None:
            return ()
        return (*self.front.english(f"{at}front."), *([COMMA] if self.front.role is Role.COMMENT else []))

    def _english_tail(self, at: str) -> Words:
        particle = tuple(Word(word, (), f"{at}verb") for word in self.group.verb.particle.split())
        parts = sorted(
            (named for named in self._named_parts(at) if named[1].role not in BEFORE_MAIN_VERB),
            key=lambda named: ENGLISH_RANK[named[1].role],
        )
        separates = self.group.verb.particle in SEPARABLE_PARTICLES
        before = 1 if separates and parts and getattr(parts[0][1].phrase, "light", False) else 0
        return (*_english(parts[:before]), *particle, *_english(parts[before:]))

    def english_relative(self, at: str = "") -> Words:
        """Return the clause as a relative clause."""
        return self.english(at)

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
        return (*self.subject.german(Case.NOMINATIVE, path), *_german_relative(self.subject, path))

    def _middle(self, order: Order, at: str) -> Iterator[tuple[float, Words]]:
        """Yield the words of the middle field, between the two parts of the German verb, each with its rank."""
        if order in (Order.FIRST, Order.LAST) or (order is Order.SECOND and self.front):
            early = self.subject.light or isinstance(self.subject, Asked)
            full = SUBJECT if self.subject.definite else UNKNOWN_SUBJECT
            yield SUBJECT_PRONOUN if early else full, self._german_subject(at)
        if "sich" in self.group.verb.flags:
            agreement = self.subject.agreement
            yield REFLEXIVE, (Word(german.REFLEXIVE[agreement.person, agreement.plural], (), f"{at}verb"),)
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


def _english(parts: Iterable[NamedPart]) -> Words:
    """Return parts in English, one after the other."""
    return tuple(chain.from_iterable(part.english(path) for path, part in parts))


def _german_relative(phrase: Phrase, path: str) -> Words:
    """Return the relative clause that modifies a phrase, between commas; nothing if there is none."""
    relative = relative_of(phrase)
    return (COMMA, *relative.german(Order.LAST, f"{path}relative."), COMMA) if relative else ()


def _absorbs_negation(part: Part) -> bool:
    """Return whether the article of an object expresses the negation of the clause."""
    phrase = noun_phrase(part.phrase) if part.role is Role.OBJECT else None
    return isinstance(phrase, NounPhrase) and phrase.determiner in (NOT_A, NO)
