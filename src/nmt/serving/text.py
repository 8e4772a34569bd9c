"""Split texts and HTML into sentences, and put their translations together again with all that stood between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import islice, zip_longest

from nmt.serving.messages import RequestError

MAX_SENTENCES = 500
"""Most sentences in a request; a text without any counts as one."""
MAX_CHARACTERS = 600
"""The longest sentence; text without punctuation is cut at a space before it is longer, and within a longer word."""
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
INITIALS = re.compile(r"(?:\w{1,2}\.)+\w{1,2}")
"""Such as z.B, U.S and a.m."""
RAW = "script|style|textarea|pre|code"
"""Elements whose content is not translated."""
MAX_TAG_CHARACTERS = 4_096
"""The longest tag whose quotes are read; others end at the first >, or with the text. So the time is bounded."""
BEGINNING = re.compile("<[a-z/!?]", re.IGNORECASE)
"""What begins a tag or a comment; any other < is text."""
RAW_BEGINNING = re.compile(rf"<({RAW})\b", re.IGNORECASE)
RAW_END = {name: re.compile(f"</{name}\\b", re.IGNORECASE) for name in RAW.split("|")}
TAG = re.compile(r"""</?[a-z](?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+>""", re.IGNORECASE)
"""A tag. As in HTML, quotes may contain > only after =; others belong to a name or a value, such as don't."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


def split(texts: Sequence[str], *, html: bool = False) -> list[list[Span]]:
    """Return the sentences of each text; refuse more than MAX_SENTENCES, of which the others are not looked for."""
    found, left = list[list[Span]](), MAX_SENTENCES
    for text in texts:
        found.append(list(islice(_html_sentences(text) if html else sentences(text), left + 1)))
        left -= max(1, len(found[-1]))
        if left < 0:
            raise RequestError(413, f"a request may not have more than {MAX_SENTENCES} sentences")
    return found


def join(text: str, spans: Sequence[Span], translations: Sequence[str], *, html: bool = False) -> str:
    """Return a text with each span replaced by its translation; everything between them is kept."""
    parts, end = [], 0
    for span, translation in zip(spans, translations, strict=True):
        parts += [text[end : span.start], escape(translation, quote=False) if html else translation]
        end = span.end
    return "".join([*parts, text[end:]])


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
    if not word.endswith(STOPS) or text[slice(*following)].lstrip(OPENING)[:1].islower():
        return False
    return not (word.endswith(".") and _is_abbreviation(word[:-1].lstrip(OPENING)))


def _is_abbreviation(word: str) -> bool:
    """Return whether a word before a period is an abbreviation, an initial or a number in an order, such as 3."""
    if word.isdecimal():
        return len(word) <= 2
    return (word.isalpha() and len(word) == 1) or word.lower() in ABBREVIATIONS or bool(INITIALS.fullmatch(word))


def _html_sentences(html: str) -> Iterator[Span]:
    """Yield the sentences between tags, without those that only spell white space, such as &nbsp; in an empty cell."""
    for outside in texts_between_tags(html):
        for inside in sentences(html[outside.start : outside.end]):
            found = Span(outside.start + inside.start, outside.start + inside.end)
            if unescape(html[found.start : found.end]).strip():
                yield found


def texts_between_tags(html: str) -> Iterator[Span]:
    """Yield the texts between tags, comments, scripts and the like.

    A tag that is never closed counts as text, because people write a <b. If more than MAX_TAG_CHARACTERS follow, it
    counts as a tag, as in browsers: a text of such characters would cost more than any other.
    """
    position = 0
    while position < len(html):
        tag = _next_tag(html, position)
        if tag.start > position:
            yield Span(position, tag.start)
        position = tag.end


def _next_tag(html: str, position: int) -> Span:
    """Return the next tag with all that belongs to it, or an empty span at the end of the text."""
    beginning = BEGINNING.search(html, position)
    end = _end_of_tag(html, beginning.start()) if beginning else None
    if not beginning or end is None:
        is_long = beginning and len(html) - beginning.start() > MAX_TAG_CHARACTERS
        return Span(beginning.start() if beginning and is_long else len(html), len(html))
    if raw := RAW_BEGINNING.match(html, beginning.start()):
        closing = RAW_END[raw[1].lower()].search(html, end)
        end = html.find(">", closing.start()) + 1 if closing else len(html)
    return Span(beginning.start(), end or len(html))


def _end_of_tag(html: str, start: int) -> int | None:
    """Return where a tag or a comment ends; None if it is never closed."""
    is_comment = html.startswith("<!--", start)
    if not is_comment and (tag := TAG.match(html, start, start + MAX_TAG_CHARACTERS)):
        return tag.end()
    mark = "-->" if is_comment else ">"
    end = html.find(mark, start)
    return None if end < 0 else end + len(mark)
