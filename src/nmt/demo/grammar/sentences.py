"""Sentences: one clause or several linked ones, with commas, capitals and a final mark."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from nmt.demo.grammar.clauses import Clause
from nmt.demo.grammar.features import Order
from nmt.demo.grammar.words import COMMA, Word, Words, merged, say, spelled, with_ending


class Connector(Enum):
    """A word that joins a second clause to the first, in both languages; `order` is the German order of the second."""

    AND = "and", "und", Order.SECOND, False, False
    BUT = "but", "aber", Order.SECOND, True
    BECAUSE = "because", "weil"
    ALTHOUGH = "although", "obwohl"
    IF = "if", "wenn"
    WHEN = "when", "als"
    """Only for the past: the present uses `if`."""
    WHILE = "while", "während"
    BEFORE = "before", "bevor"
    AFTER = "after", "nachdem"
    THAT = "that", "dass"
    WHETHER = "whether", "ob"
    TO = "", "", Order.ZU
    IN_ORDER_TO = "", "um", Order.ZU

    def __init__(
        self,
        english: str,
        german: str,
        order: Order = Order.LAST,
        english_comma: bool = False,
        german_comma: bool = True,
    ) -> None:
        self.english, self.german, self.order = english, german, order
        self.english_comma, self.german_comma = english_comma, german_comma


@dataclass(frozen=True, slots=True)
class Linked:
    """Two clauses, the second perhaps linked to a third; `reversed` puts the second first."""

    first: Clause
    connector: Connector
    second: "Clause | Linked"
    reversed: bool = False

    def english(self, at: str = "", question: bool = False) -> Words:
        """Return both clauses in English; `at` is the path of both, with a dot at its end."""
        if self.connector.order is Order.ZU and isinstance(self.second, Clause):
            second = self.second.english_infinitive(f"{at}second.")
        else:
            second = self.second.english(f"{at}second.")
        second = (*say(self.connector.english, f"{at}connector"), *second)
        first = self.first.english(f"{at}first.", question)
        return self._joined(first, second, self.connector.english_comma)

    def german(self, order: Order, at: str = "") -> Words:
        """Return both clauses in German; `order` is that of the first."""
        connector = say(self.connector.german, f"{at}connector", f"{at}second.to")  # um belongs to zu
        second = (*connector, *self.second.german(self.connector.order, f"{at}second."))
        first = self.first.german(self._order(order), f"{at}first.")
        return self._joined(first, second, self.connector.german_comma)

    def _joined(self, first: Words, second: Words, comma: bool) -> Words:
        if self.reversed:
            return (*second, COMMA, *first)
        return (*first, COMMA, *second) if comma else (*first, *second)

    def _order(self, order: Order) -> Order:
        return Order.FIRST if self.reversed else order

    def pairings(self, order: Order) -> Iterator[tuple[str, str, str]]:
        """Yield the pairings of all clauses."""
        yield from self.first.pairings(self._order(order))
        yield from self.second.pairings(self.connector.order)


def _punctuate(words: Words, mark: str) -> Words:
    """Attach commas to words, without double and final ones, and the final mark; write the first letter large."""
    found: list[Word] = []
    for word in words:
        if word != COMMA:
            found.append(word)
        elif not found[-1].text.endswith(","):
            found[-1:] = with_ending((found[-1],), ",")
    found[-1] = found[-1]._replace(text=found[-1].text.rstrip(",") + mark)
    found[0] = found[0]._replace(text=found[0].text[0].upper() + found[0].text[1:])
    return tuple(found)


def _join_cannot(words: Words) -> Words:
    """Write `can` before `not` as one word with it."""
    found: list[Word] = []
    for word in words:
        if word.text == "not" and found and found[-1].text == "can":
            found[-1] = merged("cannot", found[-1], word)
        else:
            found.append(word)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement or a question."""

    body: Clause | Linked
    question: bool = False

    def english(self) -> str:
        """Return the English sentence."""
        return spelled(self.english_words())

    def german(self) -> str:
        """Return the German sentence."""
        return spelled(self.german_words())

    def english_words(self) -> Words:
        """Return the words of the English sentence, with punctuation."""
        return _punctuate(_join_cannot(self.body.english("", self.question)), self._mark)

    def german_words(self) -> Words:
        """Return the words of the German sentence, with punctuation."""
        return _punctuate(self.body.german(self._order), self._mark)

    @property
    def _mark(self) -> str:
        return "?" if self.question else "."

    @property
    def _order(self) -> Order:
        clause = self.body.first if isinstance(self.body, Linked) else self.body
        return Order.FIRST if self.question and not clause.asks else Order.SECOND

    def pairings(self) -> set[tuple[str, str, str]]:
        """Return the combinations of words and frames that may be held out."""
        return set(self.body.pairings(self._order))
