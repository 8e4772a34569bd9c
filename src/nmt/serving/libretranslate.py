"""LibreTranslate's routes, with its fields and errors, so that its clients work unchanged."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from nmt.config.commands import ServeConfig
from nmt.serving.fields import Fields, missing
from nmt.serving.messages import RETRY, RequestError, Task
from nmt.serving.service import Model, TextAnswer
from nmt.serving.v1 import MAX_NBEST
from nmt.text.language import identified_code, language_identifier, language_name

Json = dict[str, Any] | list[dict[str, Any]]
Detector = Callable[[str], Mapping[str, float]]
"""Returns the probability of each language that it knows."""
BYTES_PER_CHARACTER = 6
"""Bytes of a character outside ASCII as most clients write it in JSON, such as \\u00e9."""
MAX_DETECTED = 2_000
"""Characters that are read to detect the language of a text; more take longer and change little."""
ITS_CODES = {401: 400, 413: 400}
"""The code of LibreTranslate by ours."""


def load_detector() -> Detector | None:
    """Return what detects languages; None if its package is not installed."""
    if not find_spec("py3langid"):
        return None
    identifier = language_identifier()
    return lambda text: {code: float(probability) for code, probability in identifier.rank(text[:MAX_DETECTED])}


class LibreTranslate:
    """The answers to LibreTranslate's requests."""

    def __init__(self, models: Sequence[Model], config: ServeConfig, detector: Detector | None) -> None:
        """Without a detector, languages are detected only if all models read the same."""
        self.models, self.config, self.detector = models, config, detector
        self.pairs = [(model.facts.source, model.facts.target) for model in models]

    async def translate(self, fields: Fields, client: str) -> Json:
        """Translate `q`, a text or a list of texts."""
        texts, is_list = self._texts(fields)
        source, target = fields.filled("source"), fields.filled("target")
        kind = fields.text("format", "text") or "text"
        if kind not in ("text", "html"):
            raise RequestError(400, "the format is not supported: it is text or html")
        count = fields.number("alternatives", 0, range(MAX_NBEST))
        sources = [each for each, translated in self.pairs if translated == target]
        languages = self._detected(texts, sources, 400) if source == "auto" and sources else []
        model = self._model(languages[0]["language"] if languages else source, target)
        found = await model.translate(client, texts, Task(nbest=count + 1), html=kind == "html")

        def listed(values: Sequence[object]) -> object:
            return values if is_list else values[0]

        answer = {"translatedText": listed([each.text() for each in found])}
        if count:
            answer["alternatives"] = listed([_alternatives(each, count) for each in found])
        if languages:
            answer["detectedLanguage"] = listed([languages[0]] * len(found))
        return answer

    async def detect(self, fields: Fields, _: str) -> Json:
        """Return the languages that `q` may be in, the most probable one first."""
        return self._detected(self._texts(fields)[0], [source for source, _ in self.pairs], 501)

    async def suggest(self, _: Fields, __: str) -> Json:
        """Refuse a suggestion, in LibreTranslate's words."""
        raise RequestError(403, "Suggestions are disabled on this server.")

    async def languages(self, _: Fields, __: str) -> Json:
        """List the languages."""
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": list(dict.fromkeys(target for source, target in self.pairs if source == code)),
            }
            for code in dict.fromkeys(code for side in zip(*self.pairs, strict=True) for code in side)
        ]

    async def health(self, _: Fields, __: str) -> Json:
        """Say whether all models are loaded."""
        if not all(model.runner.ready for model in self.models):
            raise RequestError(503, "a model is being loaded", RETRY)
        return {"status": "ok"}

    async def settings(self, _: Fields, __: str) -> Json:
        """Return what LibreTranslate's page asks for."""
        source, target = ({"code": code, "name": language_name(code)} for code in self.pairs[0])
        return {
            "apiKeys": bool(self.config.key_file),
            "charLimit": self.config.max_bytes // BYTES_PER_CHARACTER,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": bool(self.config.key_file),
            "language": {"source": source, "target": target},
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    def _texts(self, fields: Fields) -> tuple[list[str], bool]:
        """Return the texts, and whether they are a list; an empty text counts as none, as for LibreTranslate."""
        texts, is_list = fields.texts("q")
        if not texts or (texts == [""] and not is_list):
            raise missing("q")
        return texts, is_list

    def _model(self, source: str, target: str) -> Model:
        """Return the first model of a pair of languages."""
        if (source, target) in self.pairs:
            return self.models[self.pairs.index((source, target))]
        if source != "auto" and all(source != each for each, _ in self.pairs):
            raise RequestError(400, "the source language is not supported; GET /languages lists all")
        raise RequestError(
            400, "the target language is not available from the source language; GET /languages lists all"
        )

    def _detected(self, texts: Sequence[str], sources: Sequence[str], refusal: int) -> list[dict[str, Any]]:
        """Return source languages with their confidence in percent; a single one is assumed without a detector."""
        codes = sorted(set(sources))
        if not self.detector:
            if len(codes) > 1:
                raise RequestError(refusal, "this server does not detect languages: name the source language")
            return [{"confidence": 0.0, "language": codes[0]}]
        probabilities = self.detector("\n".join(texts))
        found = [(round(100 * probabilities.get(identified_code(code), 0), 2), code) for code in codes]
        return [{"confidence": share, "language": code} for share, code in sorted(found, key=lambda each: -each[0])]


def _alternatives(answer: TextAnswer, count: int) -> list[str]:
    """Return up to `count` further translations of a text, all of them different."""
    return list(dict.fromkeys(answer.text(rank) for rank in range(count + 1)))[1:]
