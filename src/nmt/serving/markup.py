"""Find the text between the tags of HTML."""

import re
from collections.abc import Iterator
from html import escape, unescape

from nmt.serving.sentences import Span

RAW = re.compile(r"<(script|style|textarea|pre|code)\b", re.IGNORECASE)
"""Elements whose content is not translated."""
BEGINNING = re.compile("<[a-z/!?]", re.IGNORECASE)
"""What begins a tag or a comment; any other < is text."""
TAG = re.compile(r"""</?[a-z](?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+>""", re.IGNORECASE)
"""A tag. As in HTML, quotes may contain > only after =; others belong to a name or a value, such as don't."""
MAX_TAG_CHARACTERS = 4_096
"""The longest tag whose quotes are read; others end at the first >, or with the text. So the time is bounded."""
RAW_END = {name: re.compile(f"</{name}\\b", re.IGNORECASE) for name in ("script", "style", "textarea", "pre", "code")}


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
    start = beginning.start()
    raw = RAW.match(html, start)
    if raw:
        closing = RAW_END[raw[1].lower()].search(html, end)
        end = html.find(">", closing.start()) + 1 if closing else len(html)
    return Span(start, end or len(html))


def _end_of_tag(html: str, start: int) -> int | None:
    """Return where a tag or a comment ends; None if it is never closed."""
    if not html.startswith("<!--", start) and (tag := TAG.match(html, start, start + MAX_TAG_CHARACTERS)):
        return tag.end()
    mark = "-->" if html.startswith("<!--", start) else ">"
    end = html.find(mark, start)
    return None if end < 0 else end + len(mark)


def to_text(html: str) -> str:
    """Return the text that a browser shows for HTML without tags."""
    return unescape(html)


def to_html(text: str) -> str:
    """Return the HTML of a text."""
    return escape(text, quote=False)
