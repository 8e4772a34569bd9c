"""The server's own routes: translations with all that the model knows of them."""

from collections.abc import Sequence
from typing import Any

from nmt.decoding.translation import Request
from nmt.serving.fields import Fields
from nmt.serving.messages import RequestError, Task
from nmt.serving.service import Model, TextAnswer
from nmt.serving.text import MAX_CHARACTERS
from nmt.text.glossary import words_of

MAX_NBEST, MAX_CHOICES, MAX_TERMS = 10, 50, 100
MAX_TERM_WORDS = 20
"""The longest term: the time to find terms grows with their length."""
MAX_BEGINNING = 2 * MAX_CHARACTERS
"""The largest number of characters with which the translation of a sentence can be asked to begin."""


class V1:
    """The answers to the server's own requests."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = models

    async def list_models(self, _: Fields, __: str) -> dict[str, Any]:
        """List the models; the first is the default."""
        return {
            "models": [
                {
                    "name": model.name,
                    "source": model.facts.source,
                    "target": model.facts.target,
                    "default": model is self.models[0],
                    "engine": model.facts.engine,
                    "attention": model.facts.attention,
                    "choices": model.facts.attention,
                    "terms": model.facts.terms,
                }
                for model in self.models
            ]
        }

    async def translate(self, fields: Fields, client: str) -> dict[str, Any]:
        """Translate `text`, a text or a list of texts."""
        texts, _ = fields.texts("text")
        model = self._model(fields)
        nbest = fields.number("nbest", 1, range(1, MAX_NBEST + 1))
        beginnings = fields.texts("beginnings")[0] if fields.values.get("beginnings") is not None else []
        if beginnings and len(beginnings) != len(texts):
            raise RequestError(400, "beginnings must have one text for each text, which may be empty")
        _check_beginnings("beginnings", beginnings)
        task = Task(nbest, fields.flag("details"))
        found = await model.translate(client, texts, task, beginnings=beginnings, terms=_terms(fields))
        return {"model": model.name, "translations": [_translation(each) for each in found]}

    async def choices(self, fields: Fields, client: str) -> dict[str, Any]:
        """Return the words that are likely to come next in the translation of a sentence."""
        sentence, beginning = fields.text("text"), fields.text("beginning", "")
        if len(sentence) > MAX_CHARACTERS:
            raise RequestError(413, f"text may have at most {MAX_CHARACTERS} characters: send one sentence")
        _check_beginnings("beginning", [beginning])
        model, count = self._model(fields), fields.number("count", 8, range(1, MAX_CHOICES + 1))
        model.check_offers(choices=True)
        (found,) = await model.ask(client, Task(choices=count), [Request(sentence, beginning)])
        return found

    def _model(self, fields: Fields) -> Model:
        name = fields.text("model", self.models[0].name)
        for model in self.models:
            if name == model.name:
                return model
        raise RequestError(404, "there is no such model; GET /v1/models lists them")


def _terms(fields: Fields) -> list[tuple[str, str]]:
    found = fields.pairs("terms", MAX_TERMS)
    if any(len(words_of(term)) > MAX_TERM_WORDS for pair in found for term in pair):
        raise RequestError(413, f"terms may have at most {MAX_TERM_WORDS} words, and each sign counts as one")
    if len(dict(found)) < len(set(found)):
        raise RequestError(400, "terms has two translations of a source term: keep one of them")
    return found


def _check_beginnings(name: str, beginnings: Sequence[str]) -> None:
    if any(len(each) > MAX_BEGINNING for each in beginnings):
        raise RequestError(413, f"{name} may have at most {MAX_BEGINNING} characters")


def _translation(answer: TextAnswer) -> dict[str, Any]:
    """Return a translation; places in the text are UTF-16 code units, in which JavaScript counts."""
    text, sentences, place, units = answer.source, [], 0, 0
    for span, candidates in zip(answer.spans, answer.candidates, strict=True):
        start = units + _units(text[place : span.start])
        place, units = span.end, start + _units(text[span.start : span.end])
        source = text[span.start : span.end]
        sentences.append({"start": start, "end": units, "source": source, "candidates": candidates})
    return {"text": answer.text(), "sentences": sentences}


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
