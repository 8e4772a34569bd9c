"""The server's own routes: translations with all that the model knows of them."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from nmt.serving import fields
from nmt.serving.errors import RequestError
from nmt.serving.requests import Task
from nmt.serving.sentences import MAX_CHARACTERS
from nmt.serving.service import Model, SentenceAnswer, Service, TextAnswer
from nmt.text.glossary import words_of

MAX_NBEST, MAX_BEAM, MAX_CHOICES, MAX_TERMS = 10, 16, 50, 100
MAX_TERM_WORDS = 20
"""The longest term: the time to find terms grows with their length."""
MAX_BEGINNING = 2 * MAX_CHARACTERS
"""The largest number of characters with which the translation of a sentence can be asked to begin."""


def routes(service: Service) -> list[Route]:
    """Return the routes."""

    async def models(_: Request) -> JSONResponse:
        return JSONResponse({"models": [_describe(model, service.models[0]) for model in service.models]})

    async def translate(request: Request) -> JSONResponse:
        values = await fields.read_json(request)
        texts, _ = fields.texts(values, "text", service.config.max_sentences)
        model = _model(service, values)
        nbest = fields.number(values, "nbest", 1, range(1, MAX_NBEST + 1))
        beam = fields.number(values, "beam", 0, range(nbest, MAX_BEAM + 1)) or None
        found = await service.translate(
            model,
            texts,
            Task(nbest, beam, fields.flag(values, "details"), fields.flag(values, "alignments")),
            beginnings=_beginnings(values, len(texts)),
            terms=_terms(values),
        )
        return JSONResponse({"model": model.name, "translations": [_translation(each) for each in found]})

    async def choices(request: Request) -> JSONResponse:
        values = await fields.read_json(request)
        sentence, beginning = fields.text(values, "text"), fields.text(values, "beginning", "")
        if len(sentence) > MAX_CHARACTERS:
            raise RequestError(413, f"text may have at most {MAX_CHARACTERS} characters: send one sentence")
        _check_beginning("beginning", beginning)
        count = fields.number(values, "count", 8, range(1, MAX_CHOICES + 1))
        return JSONResponse({"choices": await service.choices(_model(service, values), sentence, beginning, count)})

    return [
        Route("/v1/models", models),
        Route("/v1/translate", translate, methods=["POST"]),
        Route("/v1/choices", choices, methods=["POST"]),
    ]


def _describe(model: Model, default: Model) -> dict[str, Any]:
    facts = model.facts
    return {
        "name": model.name,
        "source": facts.source,
        "target": facts.target,
        "default": model is default,
        "engine": facts.engine,
        "attention": facts.attention,
        "choices": facts.choices,
        "terms": facts.terms,
    }


def _model(service: Service, values: dict[str, Any]) -> Model:
    return service.model(fields.text(values, "model") if values.get("model") is not None else None)


def _beginnings(values: dict[str, Any], texts: int) -> list[str] | None:
    """Return the beginning of each text's translation, or None."""
    if values.get("beginnings") is None:
        return None
    if len(values["beginnings"] if isinstance(values["beginnings"], list) else [""]) != texts:
        raise RequestError(400, "beginnings must have one text for each text, which may be empty")
    found, _ = fields.texts(values, "beginnings", texts)
    for each in found:
        _check_beginning("beginnings", each)
    return found


def _terms(values: dict[str, Any]) -> list[tuple[str, str]]:
    found = fields.pairs(values, "terms", MAX_TERMS)
    if any(len(words_of(term)) > MAX_TERM_WORDS for pair in found for term in pair):
        raise RequestError(413, f"terms may have at most {MAX_TERM_WORDS} words, and each sign counts as one")
    if len(dict(found)) < len(set(found)):
        raise RequestError(400, "terms has two translations of a source term: keep one of them")
    return found


def _check_beginning(name: str, beginning: str) -> None:
    if len(beginning) > MAX_BEGINNING:
        raise RequestError(413, f"{name} may have at most {MAX_BEGINNING} characters")


def _translation(answer: TextAnswer) -> dict[str, Any]:
    units = _Utf16Offsets(answer.source)
    return {"text": answer.text(), "sentences": [_sentence(answer.source, each, units) for each in answer.sentences]}


def _sentence(text: str, sentence: SentenceAnswer, units: "_Utf16Offsets") -> dict[str, Any]:
    span = sentence.span
    return {
        "start": units.of(span.start),
        "end": units.of(span.end),
        "source": text[span.start : span.end],
        "candidates": sentence.candidates,
    }


class _Utf16Offsets:
    """Converts places in a text, asked for in ascending order, to UTF-16 code units, in which JavaScript counts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = self.units = 0

    def of(self, place: int) -> int:
        """Return the number of code units before a place."""
        self.units += len(self.text[self.place : place].encode("utf-16-le")) // 2
        self.place = place
        return self.units
