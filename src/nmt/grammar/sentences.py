"""Sentences: one clause or several linked ones, with commas, capitals and a final mark."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.grammar.clauses import Clause
from nmt.grammar.features import Order
from nmt.grammar.phrases import words


@dataclass(frozen=True, slots=True)
class Connector:
    """A word that joins a second clause to the first; `order` is the German order of the second."""

    english: str
    german: str
    order: Order = Order.LAST
    english_comma: bool = False
    german_comma: bool = True


AND = Connector("and", "und", Order.SECOND, german_comma=False)
BUT = Connector("but", "aber", Order.SECOND, english_comma=True)
BECAUSE = Connector("because", "weil")
ALTHOUGH = Connector("although", "obwohl")
IF = Connector("if", "wenn")
WHEN = Connector("when", "als")
"""Only for the past: the present uses `if`."""
WHILE = Connector("while", "während")
BEFORE = Connector("before", "bevor")
AFTER = Connector("after", "nachdem")
THAT = Connector("that", "dass")
WHETHER = Connector("whether", "ob")
TO = Connector("", "", Order.ZU)
IN_ORDER_TO = Connector("", "um", Order.ZU)


@dataclass(frozen=True, slots=True)
class Linked:
    """Two clauses, the second perhaps linked to a third; `reversed` puts the second first."""

    first: Clause
    connector: Connector
    second: "Clause | Linked"
    reversed: bool = False

    def english(self, question: bool = False) -> str:
        """Return both clauses in English."""
        second = self.second.english()
        if self.connector.order is Order.ZU and isinstance(self.second, Clause):
            second = self.second.english_infinitive()
        second = words(self.connector.english, second)
        if self.reversed:
            return f"{second} , {self.first.english(question)}"
        return words(self.first.english(question), "," if self.connector.english_comma else "", second)

    def german(self, order: Order) -> str:
        """Return both clauses in German; `order` is that of the first."""
        second = words(self.connector.german, self.second.german(self.connector.order))
        if self.reversed:
            return f"{second} , {self.first.german(Order.FIRST)}"
        return words(self.first.german(order), "," if self.connector.german_comma else "", second)

    def pairings(self, order: Order) -> Iterator[tuple[str, str, str]]:
        """Yield the pairings of all clauses."""
        yield from self.first.pairings(Order.FIRST if self.reversed else order)
        yield from self.second.pairings(self.connector.order)


def spell(text: str, mark: str) -> str:
    """Join tokens into a sentence: attach commas to words, and remove double and final ones."""
    text = re.sub(r"(?: ,)+", ",", text + " ").strip().rstrip(",")
    return text[0].upper() + text[1:] + mark


@dataclass(frozen=True, slots=True)
class Sentence:
    """A statement or a question."""

    body: Clause | Linked
    question: bool = False

    def english(self) -> str:
        """Return the English sentence."""
        text = self.body.english(self.question).replace("can not", "cannot")
        return spell(text, "?" if self.question else ".")

    def german(self) -> str:
        """Return the German sentence."""
        return spell(self.body.german(self._order), "?" if self.question else ".")

    @property
    def _order(self) -> Order:
        clause = self.body.first if isinstance(self.body, Linked) else self.body
        return Order.FIRST if self.question and not clause.asks else Order.SECOND

    def pairings(self) -> set[tuple[str, str, str]]:
        """Return the combinations of words and frames that may be held out."""
        return set(self.body.pairings(self._order))
