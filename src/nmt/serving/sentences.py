"""Split text into sentences, and put their translations together again with all that stood between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

LINE = re.compile("[^\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]+")
WIDE_STOPS = "。！？"
TOKEN = re.compile(f"[^\\s{WIDE_STOPS}]*[{WIDE_STOPS}]+[”’」』）]*|[^\\s{WIDE_STOPS}]+")
"""A word with its punctuation. Chinese and Japanese have no spaces, so the marks at the end of a sentence end it."""
STOPS = (".", "!", "?", "…")
OPENING, CLOSING = "\"'“”„‚‘’«»‹›([{¿¡", "\"'“”’«»‹›)]}」』）"
MAY_END = frozenset("".join(STOPS) + WIDE_STOPS + CLOSING)
"""The last characters of tokens after which a sentence may end."""
_ABBREVIATIONS = """
mr mrs ms dr prof st jr sr vs etc inc ltd co corp no vol fig approx dept est gen col capt lt sgt rev hon
hr fr nr bzw usw ca vgl evtl ggf inkl zzgl tel str abs art bd hrsg jh mio mrd
m mm mme mlle av env p pp cf ex jan feb mar apr jun jul aug sep sept oct nov dec
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Words that often have a period inside a sentence, in lower case."""
MAX_CHARACTERS = 600
"""The longest sentence; text without punctuation is cut at a space before it is longer."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


def sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a text, without the white space around them; no sentence continues on another line."""
    for line in LINE.finditer(text):
        yield from _sentences_of_line(text, [token.span() for token in TOKEN.finditer(text, *line.span())])


def _sentences_of_line(text: str, tokens: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Yield the sentences that the tokens of a line make up; tokens are pairs of numbers, because there may be many."""
    start: int | None = None
    for token, following in zip_longest(tokens, tokens[1:]):
        begin, end = token
        start = begin if start is None else start
        if following and following[1] - start <= MAX_CHARACTERS and not _ends(text, token, following):
            continue
        yield from (Span(at, min(at + MAX_CHARACTERS, end)) for at in range(start, end, MAX_CHARACTERS))
        start = None


def _ends(text: str, token: tuple[int, int], following: tuple[int, int]) -> bool:
    """Return whether a sentence ends between two tokens."""
    begin, end = token
    if text[end - 1] not in MAY_END:
        return False
    word = text[begin:end].rstrip(CLOSING)
    if word.endswith(tuple(WIDE_STOPS)):
        return True
    if not word.endswith(STOPS) or _begins_in_lower_case(text[slice(*following)]):
        return False
    return not (word.endswith(".") and _is_abbreviation(word[:-1].lstrip(OPENING)))


def _begins_in_lower_case(word: str) -> bool:
    return word.lstrip(OPENING)[:1].islower()


def _is_abbreviation(word: str) -> bool:
    """Return whether a word before a period is an abbreviation, an initial or a number in an order, such as 3."""
    if word.isdecimal():
        return len(word) <= 2
    return (word.isalpha() and len(word) == 1) or word.lower() in ABBREVIATIONS or bool(INITIALS.fullmatch(word))


INITIALS = re.compile(r"(?:\w{1,2}\.)+\w{1,2}")
"""Such as z.B, U.S and a.m."""


def join(text: str, spans: Sequence[Span], translations: Sequence[str]) -> str:
    """Return a text with each span replaced by its translation; everything between them is kept."""
    parts, end = [], 0
    for span, translation in zip(spans, translations, strict=True):
        parts += [text[end : span.start], translation]
        end = span.end
    return "".join([*parts, text[end:]])
