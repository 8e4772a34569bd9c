"""The grammar of the demo language: each rule builds a phrase in English, as a tree, and in German, word by word.

Words of the two languages that mean the same share an element, so the word alignment of a sentence follows from its
derivation, as its tree and its translation do. `author` draws sentences.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from nmt.demo.phrases import COMMA, Phrase, Token, Words, both
from nmt.demo.words import BE, REFLEXIVES, Entry, present
from nmt.parsing.trees import Leaf, Node, Part, leaves, with_leaves
from nmt.text.alignments import GoldAlignment


class Order(Enum):
    """The position of the verb in a German clause."""

    FIRST = "first"
    SECOND = "second"
    LAST = "last"
    ZU = "zu"


class Mode(Enum):
    """Tense, aspect or modality: the auxiliaries in English and German."""

    PRESENT = "", ""
    PAST = "", "haben"
    PERFECT = "have", "haben"
    PROGRESSIVE = "be", ""
    FUTURE = "will", "werden"
    CAN = "can", "können"
    MUST = "must", "müssen"
    SHOULD = "should", "sollen"
    MAY = "may", "dürfen"


class Role(Enum):
    """The function of a phrase in its clause: its rank in the order of English, and in the German middle field.

    German order: time, manner, place; known before unknown; phrases that belong to the verb last.
    """

    FREQUENCY = 0, 25
    """Before the English main verb."""
    RECIPIENT = 1, 30
    OBJECT = 2, 40
    OBLIQUE = 3, 90
    PREDICATE = 4, 95
    ALREADY = 0, 45
    MANNER = 5, 60
    COMPANION = 6, 70
    PLACE = 7, 80
    TIME = 8, 20
    CLAUSE = 9, 200
    """After the closing verb."""


SUBJECT_PRONOUN, REFLEXIVE, SUBJECT, PRONOUN_OBJECT, PRONOUN_RECIPIENT, NEGATION, UNKNOWN_OBJECT = 1, 2, 3, 5, 6, 50, 85
"""More ranks in the German middle field."""
BEFORE_MAIN_VERB = (Role.FREQUENCY, Role.ALREADY)
Placed = tuple[Role, Phrase]


@dataclass(frozen=True)
class Clause:
    """A subject, a verb and phrases, which become a clause of any kind in each language."""

    subject: Phrase
    verb: Entry
    mode: Mode
    parts: tuple[Placed, ...] = ()
    front: Placed | None = None
    """The phrase that opens the clause in both languages."""
    negation: object = None
    """The element of the negation, if there is one."""
    element: object = field(default_factory=object)
    """What the verb means."""
    auxiliary: object = field(default_factory=object)

    def english(self, kind: str = "statement") -> Node:
        """Return the English tree of a statement, a question or a relative clause."""
        inverted = kind == "question" and not self.subject.asks
        finite, *main = self._english_verbs(inverted)
        negation = [Token("RB", "not", (self.negation,), self.element)] if self.negation else []
        early: list[Part] = [*negation, *(phrase.english for role, phrase in self.parts if role in BEFORE_MAIN_VERB)]
        rest: list[Part] = [Node("VP", (*main, *self._english_tail()))] if main else self._english_tail()
        subject, front = self.subject.english, [self.front[1].english] if self.front else []
        if inverted:
            body = Node("SQ", (finite, subject, *early, *rest))
            return Node("SBARQ", (*front, body)) if front else body
        if main or self.verb.english[0] == "be":
            phrase: tuple[Part, ...] = (Node("VP", (finite, *early, *rest)),)
        else:
            phrase = (*early, Node("VP", (finite, *rest)))
        if kind == "question":
            return Node("SBARQ", (subject, Node("SQ", phrase)))
        if kind == "relative":
            return Node("SBAR", (*front, Node("S", (subject, *phrase))) if front else (subject, Node("S", phrase)))
        comma = (COMMA,) if self.front and self.front[0] is Role.CLAUSE else ()
        return Node("S", (*front, *comma, subject, *phrase))

    def _english_verbs(self, inverted: bool) -> list[Token]:
        """Return the finite verb, which is an auxiliary if a second verb follows."""
        base, singular, past, participle, gerund = self.verb.english
        base = base.partition("~")[0]
        auxiliary = self.mode.value[0] or ("do" if base != "be" and (inverted or self.negation) else "")
        person = 3 if self.subject.plural else self.subject.person - 1  # the index into BE
        third, is_past = person == 2, self.mode is Mode.PAST
        tag = "VBD" if is_past else "VBZ" if third else "VBP"
        if not auxiliary:
            form = BE[is_past][person] if base == "be" else past if is_past else singular if third else base
            return [Token(tag, form, (self.element,))]
        main = {"have": ("VBN", participle), "be": ("VBG", gerund)}.get(auxiliary, ("VB", base))
        form = auxiliary
        if auxiliary == "be":
            form = BE[False][person]
        elif auxiliary == "have":
            form = "has" if third else "have"
        elif auxiliary == "do":
            form = "did" if is_past else "does" if third else "do"
        else:
            tag = "MD"
        return [Token(tag, form, (self.auxiliary,), self.element), Token(*main, (self.element,))]

    def _english_tail(self) -> list[Part]:
        later = [part for part in self.parts if part[0] not in BEFORE_MAIN_VERB]
        tail: list[Part] = [phrase.english for _, phrase in sorted(later, key=lambda part: part[0].value[0])]
        particle = self.verb.english[0].partition("~")[2]
        if particle:
            tree = Node("PRT", (Token("RP", particle, (), self.element),))
            tail.insert(1 if later and later[0][1].light else 0, tree)
        return tail

    def english_infinitive(self) -> Node:
        """Return the clause without its subject, after `to`."""
        verb = Token("VB", self.verb.english[0].partition("~")[0], (self.element,))
        to = Token("TO", "to", (self.auxiliary,), self.element)
        return Node("S", (Node("VP", (to, Node("VP", (verb, *self._english_tail())))),))

    def german(self, order: Order) -> Words:
        """Return the German words; a phrase in front, or the subject, stands before the verb."""
        opening, closing = self._german_verbs(order)
        subject = (*self.subject.german, *self.subject.relative)
        front: Words = ()
        if self.front:
            role, phrase = self.front
            front = (*phrase.german[1:], COMMA) if role is Role.CLAUSE else phrase.german
        elif order is Order.SECOND or self.subject.asks:
            front, subject = subject, ()
        middle = sorted(self._middle(subject if order is not Order.ZU else ()), key=lambda ranked: ranked[0])
        clauses = [phrase.german for role, phrase in self.parts if role is Role.CLAUSE]
        after = [*(phrase.relative for _, phrase in self.parts), *clauses]
        return (*front, *opening, *_joined(words for _, words in middle), *closing, *_joined(after))

    def _middle(self, subject: Words) -> Iterator[tuple[int, Words]]:
        yield SUBJECT_PRONOUN if self.subject.light else SUBJECT, subject
        if "sich" in self.verb.uses:
            reflexive = REFLEXIVES.get((self.subject.person, self.subject.plural), "sich")
            yield REFLEXIVE, (Token("", reflexive, (), self.element),)
        objects = [phrase.german for role, phrase in self.parts if role is Role.OBJECT]
        if self.negation and not any(self.negation in token.means for words in objects for token in words):
            yield NEGATION, (Token("", "nicht", (self.negation,), self.element),)
        for role, phrase in self.parts:
            if role is not Role.CLAUSE:
                yield _rank(role, phrase), phrase.german

    def _german_verbs(self, order: Order) -> tuple[Words, Words]:
        """Return the words before and after the middle field."""
        first, third, participle = self.verb.german
        separable, _, infinitive = first.rpartition("-")
        whole, auxiliary = separable + infinitive, self.mode.value[1]
        if order is Order.ZU:
            if separable:
                return (), (Token("", f"{separable}zu{infinitive}", (self.element, self.auxiliary)),)
            return (), (Token("", "zu", (self.auxiliary,), self.element), Token("", whole, (self.element,)))
        person = self.subject.person, self.subject.plural
        if auxiliary == "haben" and "sein" in self.verb.uses:
            auxiliary = "sein"
        if not auxiliary or (whole == "sein" and self.mode is Mode.PAST):
            form = present("war" if auxiliary else infinitive, third, *person)
            if order is Order.LAST:
                return (), (Token("", separable + form, (self.element,)),)
            prefix = (Token("", separable, (), self.element),) if separable else ()
            return (Token("", form, (self.element,)),), prefix
        finite = Token("", present(auxiliary, "", *person), (self.auxiliary,), self.element)
        main = Token("", participle if auxiliary in ("haben", "sein") else whole, (self.element,))
        return ((), (main, finite)) if order is Order.LAST else ((finite,), (main,))


def _rank(role: Role, phrase: Phrase) -> int:
    if role is Role.OBJECT and not phrase.definite:
        return UNKNOWN_OBJECT
    if phrase.light and role in (Role.OBJECT, Role.RECIPIENT):
        return PRONOUN_OBJECT if role is Role.OBJECT else PRONOUN_RECIPIENT
    return role.value[1]


def _joined(phrases: Iterable[Words]) -> Words:
    return tuple(token for words in phrases for token in words)


def related(phrase: Phrase, clause: Clause) -> Phrase:
    """Return a noun phrase with a relative clause."""
    english = Node("NP", (phrase.english, clause.english("relative")))
    return replace(phrase, english=english, relative=(COMMA, *clause.german(Order.LAST), COMMA))


def subordinate(conjunction: Entry, clause: Clause) -> Phrase:
    """Return a clause after a conjunction, in German with the comma before it."""
    word, german = both("IN", *conjunction.english, *conjunction.german)
    return Phrase(Node("SBAR", (word, clause.english())), (COMMA, german, *clause.german(Order.LAST)))


def infinitive(clause: Clause) -> Phrase:
    """Return a clause as an infinitive, in German with the comma before it."""
    return Phrase(clause.english_infinitive(), (COMMA, *clause.german(Order.ZU)))


def coordinated(first: Clause, link: Entry, second: Clause) -> tuple[Node, Words]:
    """Return two main clauses with a word between them."""
    word, german = both("CC", *link.english, *link.german)
    comma = (COMMA,) if "comma" in link.uses else ()
    tree = Node("S", (first.english(), *comma, word, second.english()))
    return tree, (*first.german(Order.SECOND), *comma, german, *second.german(Order.SECOND))


Combination = tuple[str, str, str]
"""Of an adjective and a noun, a verb and its object, or a verb and its position and form, after the kind."""


@dataclass(frozen=True)
class Sentence:
    """A statement or a question in both languages."""

    english: Node
    german: Words
    mark: str
    combinations: frozenset[Combination] = frozenset()

    @cached_property
    def pair(self) -> tuple[str, str]:
        """The English and the German text."""
        english, german = self._spelled()
        return " ".join(token.word for token in english), " ".join(token.word for token in german)

    def tree(self) -> Node:
        """Return the English tree, with the mark."""
        tree = Node(self.english.label, (*self.english.children, Leaf(".", self.mark)))
        first, *others = leaves(tree)
        return with_leaves(
            tree, [Leaf(first.tag, _capitalised(first.word)), *(Leaf(each.tag, each.word) for each in others)]
        )

    def alignment(self) -> GoldAlignment:
        """Return the links from English to German words; they are sure if both express the same element."""
        english, german = self._spelled()
        rows, columns = _meanings(english, german), _meanings(german, english)
        links = {
            (i, j): sure and also_sure
            for i, (row, sure) in enumerate(rows)
            for j, (column, also_sure) in enumerate(columns)
            if not row.isdisjoint(column)
        }
        return GoldAlignment(frozenset(link for link, sure in links.items() if sure), frozenset(links))

    def _spelled(self) -> tuple[list[Token], list[Token]]:
        """Return the words of both languages that spaces divide, capitalised and with their punctuation."""
        english = (leaf for leaf in leaves(self.english) if isinstance(leaf, Token))
        return _with_marks(english, self.mark), _with_marks(self.german, self.mark)


def _with_marks(tokens: Iterable[Token], end: str) -> list[Token]:
    """Join commas, single ones only, and the final mark to the words before them."""
    found: list[Token] = []
    for token in (*tokens, Token(".", end)):
        if token.tag not in (",", "."):
            found.append(token if found else Token("", _capitalised(token.word), token.means, token.of))
        else:
            last = found[-1]
            found[-1] = Token("", last.word.removesuffix(",") + token.word, last.means, last.of)
    return found


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def _meanings(words: Iterable[Token], others: Iterable[Token]) -> list[tuple[set[object], bool]]:
    """Return the elements by which words are linked, and whether the other language expresses one of them, too."""
    said = {element for word in others for element in word.means}
    return [(set(word.means), True) if said.intersection(word.means) else ({word.of} - {None}, False) for word in words]
