"""Split the texts of a request into sentences, and find the terms in them."""

from collections.abc import Iterator, Sequence
from itertools import islice

from nmt.decoding.request import Request
from nmt.serving import markup
from nmt.serving.errors import RequestError, too_many_sentences
from nmt.serving.sentences import Span, sentences
from nmt.text.glossary import Glossary

Terms = Sequence[tuple[str, str]]
"""Terms of the source language, each with the one that must translate it."""
MAX_TERM_CHARACTERS = 300
"""The most characters of the terms that one translation must contain: each may be a step of the search."""


def split(texts: Sequence[str], most: int, *, html: bool) -> list[list[Span]]:
    """Return the sentences of each text; refuse more than `most`, of which the others are not looked for any more.

    A text without sentences counts as one.
    """
    found, left = list[list[Span]](), most
    for text in texts:
        places = list(islice(_html_sentences(text) if html else sentences(text), left + 1))
        left -= max(1, len(places))
        if left < 0:
            raise too_many_sentences(most)
        found.append(places)
    return found


def requests_for(
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    beginnings: Sequence[str] | None,
    terms: Terms,
    *,
    html: bool,
) -> list[Request]:
    """Return what is asked of the model for each sentence of each text."""
    requests, glossary = [], Glossary(dict(terms))
    for index, (text, places) in enumerate(zip(texts, spans, strict=True)):
        beginning = beginnings[index] if beginnings else ""
        if beginning and len(places) > 1:
            raise RequestError(400, "beginnings: only texts of a single sentence can have one")
        for place in places:
            sentence = text[place.start : place.end]
            sentence = markup.to_text(sentence) if html else sentence
            requests.append(Request(sentence, beginning, _checked(glossary.find(sentence))))
    return requests


def _checked(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse terms with which the search would take too long."""
    if sum(map(len, terms)) > MAX_TERM_CHARACTERS:
        raise RequestError(
            413, f"the terms of a sentence may have at most {MAX_TERM_CHARACTERS} characters together: give fewer terms"
        )
    return terms


def _html_sentences(html: str) -> Iterator[Span]:
    """Yield the sentences between tags, without those that only spell white space, such as &nbsp; in an empty cell."""
    for span in markup.texts_between_tags(html):
        for inside in sentences(html[span.start : span.end]):
            found = Span(span.start + inside.start, span.start + inside.end)
            if markup.to_text(html[found.start : found.end]).strip():
                yield found
