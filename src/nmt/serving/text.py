"""Split texts and HTML into sentences, and put their translations together again with all that stood between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

MAX_CHARACTERS = 600
"""The longest sentence; text without punctuation is cut at a space before it is longer."""
MAX_LETTERS = 150
"""A longer word is cut into parts of this length: with a piece per letter, they take as long as many words."""
OPENING, CLOSING = "\"'“”„‚‘’«»‹›([{¿¡", "\"'“”’«»‹›)]}」』）"
BREAK = re.compile(
    rf"[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]+|(?<![.!?…])[.!?…]++[{re.escape(CLOSING)}]*+(?=\s)|[。！？]+[”’」』）]*"
)
"""Where a sentence may end: at a line end, at a mark before white space, and at Chinese and Japanese marks."""
FOLLOWING = re.compile(rf"\s*+[{re.escape(OPENING)}]*+(.?)")
"""The first letter after the end of a sentence."""
PART = re.compile(rf"\S(?:.{{0,{MAX_CHARACTERS - 2}}}\S)?(?!\S)|\S{{1,{MAX_LETTERS}}}", re.DOTALL)
"""As many whole words as may be translated together."""
LONGEST_ABBREVIATION = 20
_ABBREVIATIONS = """
mr mrs ms dr prof st jr sr vs etc inc ltd co corp no vol fig approx dept est gen col capt lt sgt rev hon
hr fr nr bzw usw ca vgl evtl ggf inkl zzgl tel str abs art bd hrsg jh mio mrd
m mm mme mlle av env p pp cf ex jan feb mar apr jun jul aug sep sept oct nov dec
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Words that often have a period inside a sentence, in lower case."""
INITIALS = re.compile(r"[^\W\d_]|\d{1,2}|(?:\w{1,2}\.)+\w{1,2}")
"""Such as J, 3, z.B, U.S and a.m: initials, and numbers in an order."""
MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(script|style|textarea|pre|code)\b.*?(?:</\1\b[^<>]*>|\Z)
    |</?[a-z!?](?:[^<>"'=]|=\s*+(?:"[^"<]*+"|'[^'<]*+')?+|["'])*+>""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""What is not translated. As in HTML, quotes may contain > only after =. No tag goes on after another <, so the time to
find them all grows in proportion to the text."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


def join(text: str, spans: Sequence[Span], translations: Sequence[str], *, html: bool = False) -> str:
    """Return a text with each span replaced by its translation; everything between them is kept."""
    parts, end = [], 0
    for span, translation in zip(spans, translations, strict=True):
        parts += [text[end : span.start], escape(translation, quote=False) if html else translation]
        end = span.end
    return "".join([*parts, text[end:]])


def sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield the sentences of a part of a text, without the white space around them; each is on one line."""
    end = len(text) if end is None else end
    for found in BREAK.finditer(text, start, end):
        if _ends(text, found, end):
            yield from _parts(text, start, found.end())
            start = found.end()
    yield from _parts(text, start, end)


def _parts(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield a sentence, in several parts if it is too long."""
    return (Span(*found.span()) for found in PART.finditer(text, start, end))


def _ends(text: str, found: re.Match[str], end: int) -> bool:
    """Return whether a sentence ends at a possible end."""
    mark = found[0][0]
    if mark not in ".!?…":
        return True
    following = FOLLOWING.match(text, found.end(), end)
    if following and following[1].islower():
        return False
    if mark != "." or len(found[0].rstrip(CLOSING)) > 1:
        return True
    before = text[max(0, found.start() - LONGEST_ABBREVIATION) : found.start()].split()
    word = before[-1].lstrip(OPENING) if before and not text[found.start() - 1].isspace() else ""
    return not (word.lower() in ABBREVIATIONS or INITIALS.fullmatch(word))


def html_sentences(html: str) -> Iterator[Span]:
    """Yield the sentences between tags, without those that only spell white space, such as &nbsp; in an empty cell."""
    for start, end in texts_between_tags(html):
        for found in sentences(html, start, end):
            if unescape(html[found.start : found.end]).strip():
                yield found


def texts_between_tags(html: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the texts between tags, comments, scripts and the like."""
    position = 0
    for markup in MARKUP.finditer(html):
        if html[position : markup.start()].strip():
            yield position, markup.start()
        position = markup.end()
    yield position, len(html)
