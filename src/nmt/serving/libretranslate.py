"""LibreTranslate's routes, with its fields and errors, so that its clients work unchanged."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from nmt.serving import fields
from nmt.serving.detection import Detector, detected
from nmt.serving.errors import RequestError
from nmt.serving.requests import Task
from nmt.serving.service import Model, Service, TextAnswer
from nmt.serving.v1 import MAX_NBEST
from nmt.text.language import language_name

AUTO = "auto"
"""The source language of a text whose language is not known."""
BYTES_PER_CHARACTER = 6
"""Bytes of a character outside ASCII as most clients write it in JSON, such as \\u00e9."""
ITS_CODES = {401: 400, 413: 400}
"""The code of LibreTranslate by ours."""
NO_TARGET = "the target language is not available from the source language; GET /languages lists all"
Answering = Callable[[Request], Awaitable[JSONResponse]]


def routes(service: Service, detector: Detector | None) -> list[Route]:
    """Return the routes; without a detector, languages are detected only if all models read the same."""

    async def translate(request: Request) -> JSONResponse:
        values = await fields.read_values(request)
        texts, is_list = _texts(service, values)
        source, target = (fields.filled_text(values, name) for name in ("source", "target"))
        kind = fields.text(values, "format", "text") or "text"
        if kind not in ("text", "html"):
            raise RequestError(400, "the format is not supported: it is text or html")
        alternatives = fields.number(values, "alternatives", 0, range(MAX_NBEST))
        languages = _detected_sources(service, texts, target, detector) if source == AUTO else []
        model = _choose_model(service, languages[0]["language"] if languages else source, target)
        found = await service.translate(model, texts, Task(nbest=alternatives + 1), html=kind == "html")
        return JSONResponse(_answer(found, languages, alternatives, is_list=is_list))

    async def detect(request: Request) -> JSONResponse:
        texts, _ = _texts(service, await fields.read_values(request))
        return JSONResponse(detected(detector, texts, [model.facts.source for model in service.models], 501))

    async def suggest(_: Request) -> JSONResponse:
        raise RequestError(403, "Suggestions are disabled on this server.")  # LibreTranslate's words

    async def languages(_: Request) -> JSONResponse:
        return JSONResponse(_languages(service))

    async def health(_: Request) -> JSONResponse:
        if not all(model.runner.ready for model in service.models):
            raise RequestError(503, "a model is being loaded", {"Retry-After": "5"})
        return JSONResponse({"status": "ok"})

    async def settings(_: Request) -> JSONResponse:
        return JSONResponse(_settings(service))

    return [
        Route("/translate", _with_its_codes(translate), methods=["POST"]),
        Route("/detect", _with_its_codes(detect), methods=["POST"]),
        Route("/suggest", suggest, methods=["POST"]),
        Route("/languages", languages, methods=["GET", "POST"]),  # the client of argostranslate posts
        Route("/health", health),
        Route("/frontend/settings", settings),
    ]


def _with_its_codes(answer: Answering) -> Answering:
    """Refuse with the codes that LibreTranslate uses."""

    async def answered(request: Request) -> JSONResponse:
        try:
            return await answer(request)
        except RequestError as error:
            raise RequestError(ITS_CODES.get(error.status, error.status), error.message, error.headers) from error

    return answered


def _texts(service: Service, values: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the texts, and whether they were a list; an empty one, which LibreTranslate takes as none, is refused."""
    texts, is_list = fields.texts(values, "q", service.config.max_sentences)
    if not texts or (texts == [""] and not is_list):
        raise fields.missing("q")
    return texts, is_list


def _detected_sources(
    service: Service, texts: list[str], target: str, detector: Detector | None
) -> list[dict[str, Any]]:
    """Return the source languages from which the target can be translated, the most probable one first."""
    sources = [model.facts.source for model in service.models if model.facts.target == target]
    if not sources:
        raise RequestError(400, NO_TARGET)
    return detected(detector, texts, sources, 400)


def _choose_model(service: Service, source: str, target: str) -> Model:
    """Return the first model of a pair of languages."""
    pairs = [(model.facts.source, model.facts.target) for model in service.models]
    if (source, target) in pairs:
        return service.models[pairs.index((source, target))]
    if source not in (pair[0] for pair in pairs):
        raise RequestError(400, "the source language is not supported; GET /languages lists all")
    raise RequestError(400, NO_TARGET)


def _answer(
    found: list[TextAnswer], languages: list[dict[str, Any]], alternatives: int, *, is_list: bool
) -> dict[str, Any]:
    """Return the fields of an answer; `languages` are those that were detected, if any."""
    translated, others = [each.text() for each in found], [_alternatives(each, alternatives) for each in found]
    answer: dict[str, Any] = {"translatedText": translated if is_list else translated[0]}
    if alternatives:
        answer["alternatives"] = others if is_list else others[0]
    if languages:
        answer["detectedLanguage"] = [languages[0] for _ in found] if is_list else languages[0]
    return answer


def _alternatives(answer: TextAnswer, count: int) -> list[str]:
    """Return up to `count` further translations of a text, all of them different."""
    ranked = dict.fromkeys(answer.text(rank) for rank in range(count + 1))
    return list(ranked)[1:]


def _languages(service: Service) -> list[dict[str, Any]]:
    pairs = [(model.facts.source, model.facts.target) for model in service.models]
    codes = dict.fromkeys([*(source for source, _ in pairs), *(target for _, target in pairs)])
    return [
        {
            "code": code,
            "name": language_name(code),
            "targets": list(dict.fromkeys(target for source, target in pairs if source == code)),
        }
        for code in codes
    ]


def _settings(service: Service) -> dict[str, Any]:
    facts = service.models[0].facts
    return {
        "apiKeys": bool(service.config.key_file),
        "charLimit": service.config.max_bytes // BYTES_PER_CHARACTER,
        "filesTranslation": False,
        "frontendTimeout": 500,
        "keyRequired": bool(service.config.key_file),
        "language": {
            "source": {"code": facts.source, "name": language_name(facts.source)},
            "target": {"code": facts.target, "name": language_name(facts.target)},
        },
        "suggestions": False,
        "supportedFilesFormat": [],
    }
