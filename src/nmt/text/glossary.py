"""Terms and their translations, and which of them stand in a line."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Self

from nmt.errors import UserError
from nmt.text.lines import read_input

_WITHOUT_SPACES = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u309f\u3100-\u312f\u31a0-\u31bf"  # hiragana and bopomofo; katakana spells foreign words, which stay whole
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Scripts in which each character is a word."""
_MARK = "".join(each for each in map(chr, range(0x10000)) if unicodedata.category(each)[0] == "M")
"""Marks belong to the letter before them, as in Hindi and in decomposed é, but are no \\w."""
_WORD_OR_CHARACTER = re.compile(rf"(?:[^\W{_WITHOUT_SPACES}]|[{_MARK}])+|[{_WITHOUT_SPACES}][{_MARK}]*|\S")


class Glossary:
    """Terms of the source language and how they must be translated."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Take the translation of each term."""
        self.targets = list(terms.values())
        """The translations of all terms."""
        self._terms: dict[tuple[str, ...], list[tuple[list[str], str]]] = {}
        for source, target in terms.items():
            words = words_of(source)
            self._terms.setdefault(_in_lower_case(words), []).append((words, target))
        self._sizes = sorted({*map(len, self._terms)}, reverse=True)

    @classmethod
    def read(cls, file: str) -> Self:
        """Read a file with a term, a tab and its translation on each line; "" is a glossary without terms."""
        terms: dict[str, str] = {}
        for number, line in enumerate(read_input(file, "decoding.terms") if file else (), 1):
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
        words, found, place = words_of(line) if self._terms else [], dict[str, None](), 0
        lower = _in_lower_case(words)
        while place < len(words):
            size, target = 1, None
            for size in self._sizes:
                here = words[place : place + size]
                fitting = self._terms.get(lower[place : place + size], ())
                if target := next((target for term, target in fitting if all(map(_is_same, term, here))), None):
                    found[target] = None
                    break
            place += size if target else 1
        return tuple(found)


def words_of(text: str) -> list[str]:
    """Return the words and the other characters of a text, as terms are compared with it."""
    return _WORD_OR_CHARACTER.findall(text)


def _in_lower_case(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


def _is_same(term: str, word: str) -> bool:
    return term in (word, word.lower())
