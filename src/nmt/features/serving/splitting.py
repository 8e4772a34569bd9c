"""Split the texts of a request into sentences, and find the terms in them."""

from collections.abc import Sequence

from nmt.decoding.request import Request
from nmt.features.serving import markup
from nmt.features.serving.errors import RequestError
from nmt.page.sentences import Span, sentences
from nmt.terms.glossary import Glossary

Terms = Sequence[tuple[str, str]]
"""Terms of the source language, each with the one that must translate it."""


def split(texts: Sequence[str], *, html: bool) -> list[list[Span]]:
    """Return the sentences of each text."""
    return [_html_sentences(text) if html else list(sentences(text)) for text in texts]


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
            requests.append(Request(sentence, beginning, glossary.find(sentence)))
    return requests


def _html_sentences(html: str) -> list[Span]:
    found = []
    for span in markup.texts_between_tags(html):
        inside = sentences(html[span.start : span.end])
        found += [Span(span.start + each.start, span.start + each.end) for each in inside]
    return found
