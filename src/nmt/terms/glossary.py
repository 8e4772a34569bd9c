"""Terms and their translations, and which of them stand in a line."""

import re
from collections.abc import Iterable, Mapping
from typing import Self

from nmt.errors import UserError
from nmt.text.streams import read_input

WORD = re.compile(r"\w+|[^\w\s]")


class Glossary:
    """Terms of the source language and how they must be translated."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Take the translation of each term."""
        self._by_first_word: dict[str, list[tuple[list[str], str]]] = {}
        for source, target in terms.items():
            words = WORD.findall(source)
            self._by_first_word.setdefault(words[0].lower(), []).append((words, target))
        for entries in self._by_first_word.values():
            entries.sort(key=lambda entry: -len(entry[0]))
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

        A term in lower case also stands in a line in upper case, such as at its beginning; other terms only as written.
        """
        if not self._by_first_word:
            return ()
        return tuple(dict.fromkeys(self._found(WORD.findall(line))))

    def _found(self, words: list[str]) -> Iterable[str]:
        place = 0
        while place < len(words):
            for term, target in self._by_first_word.get(words[place].lower(), ()):
                if len(words) - place >= len(term) and all(map(_matches, term, words[place:])):
                    yield target
                    place += len(term) - 1
                    break
            place += 1


def _matches(term: str, word: str) -> bool:
    return term == word or (term.islower() and term == word.lower())
