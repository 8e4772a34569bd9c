"""Terms and their translations, and which of them stand in a line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from nmt.errors import UserError
from nmt.text.lines import read_input
from nmt.text.words import WORD

WORD_OR_CHARACTER = re.compile(rf"{WORD.pattern}|\S")


@dataclass(slots=True)
class _Node:
    """The beginning of some terms: the words that may follow it, and the translation of the term that ends with it."""

    following: dict[str, "_Node"] = field(default_factory=dict)
    target: str | None = None


class Glossary:
    """Terms of the source language and how they must be translated."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Take the translation of each term."""
        self._start = _Node()
        for source, target in terms.items():
            node = self._start
            for word in words_of(source):
                node = node.following.setdefault(word, _Node())
            if node.target is None:  # terms that differ only in spaces are the same, and the first counts
                node.target = target
        self.targets = list(terms.values())
        """The translations of all terms."""

    @classmethod
    def read(cls, file: str) -> Self:
        """Read a file with a term, a tab and its translation on each line; "" is a glossary without terms."""
        if not file:
            return cls({})
        terms: dict[str, str] = {}
        for number, line in enumerate(read_input(file, "decoding.terms"), 1):
            source, *target = (part.strip() for part in line.split("\t"))
            if not line.strip():
                continue
            if len(target) != 1 or not source or not target[0]:
                raise UserError(f"{file}, line {number}: not a term, a tab and its translation")
            if terms.setdefault(source, target[0]) != target[0]:
                raise UserError(f"{file}, line {number}: {source!r} has another translation above: keep one of them")
        return cls(terms)

    def find(self, line: str) -> tuple[str, ...]:
        """Return the translations of the terms that stand in a line as whole words, the longest term where several do.

        A lower-case word of a term also stands in a line in upper case, such as at its beginning; other words only as
        they are written.
        """
        words, found, place = words_of(line) if self._start.following else [], dict[str, None](), 0
        while place < len(words):
            size, target = self._longest(words, place)
            if target is not None:
                found[target] = None
            place += max(1, size)
        return tuple(found)

    def _longest(self, words: Sequence[str], start: int) -> tuple[int, str | None]:
        """Return the number of words of the longest term that begins at a place, and its translation."""
        found: tuple[int, str | None] = 0, None
        nodes = [self._start]
        for place in range(start, len(words)):
            spellings = dict.fromkeys((words[place], words[place].lower()))
            nodes = [node.following[each] for node in nodes for each in spellings if each in node.following]
            if not nodes:
                break
            if (target := next((node.target for node in nodes if node.target is not None), None)) is not None:
                found = place + 1 - start, target
        return found


def words_of(text: str) -> list[str]:
    """Return the words and the other characters of a text, as terms are compared with it."""
    return WORD_OR_CHARACTER.findall(text)
