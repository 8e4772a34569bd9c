"""What the routes answer: LibreTranslate's, so that its clients work unchanged, and the server's own under /v1."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from importlib.util import find_spec
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException

from nmt.decoding.translation import Request
from nmt.serving.messages import RETRY, Answer, Task
from nmt.serving.process import ModelProcess
from nmt.serving.queue import Queue
from nmt.serving.text import MAX_CHARACTERS, Span, html_sentences, join, sentences
from nmt.text.language import identified_code, language_identifier, language_name

Json = dict[str, Any] | list[dict[str, Any]]
Detector = Callable[[str], Mapping[str, float]]
"""Returns the probability of each language that it knows."""
MAX_SENTENCES = 500
"""Most sentences in a request; a text without any counts as one."""
MAX_NBEST, MAX_CHOICES = 10, 50
MAX_DETAILS = 2_000_000
"""The most entries of attention in an answer, each of a few bytes."""
MAX_QUICK_CHARACTERS = 10_000
"""The longest texts that are split immediately; others are split in a thread, so that nobody waits."""
MAX_DETECTED = 2_000
"""Characters that are read to detect the language of a text; more take longer and change little."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has characters that no text has")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]
Texts = Annotated[list[Text], Field(max_length=MAX_SENTENCES)]
Beginning = Annotated[Text, Field(max_length=2 * MAX_CHARACTERS)]


class Body(BaseModel):
    """What every request may contain."""

    api_key: str = ""
    model: str | None = None


class LibreBody(Body):
    """LibreTranslate's request; detecting the language reads `q` only."""

    q: Annotated[Text, Field(min_length=1)] | Annotated[Texts, Field(min_length=1)]
    source: str = "auto"
    target: str = ""
    format: Literal["text", "html", ""] = "text"
    alternatives: int = Field(0, ge=0, lt=MAX_NBEST)


class TranslateBody(Body):
    """A request for translations with all that the model knows of them."""

    text: Text | Texts
    nbest: int = Field(1, ge=1, le=MAX_NBEST)
    details: bool = False
    beginnings: list[Beginning] = Field(default_factory=list)


class ChoicesBody(Body):
    """A request for the words that are likely to come next."""

    text: Annotated[Text, Field(max_length=MAX_CHARACTERS)]
    beginning: Beginning = ""
    count: int = Field(8, ge=1, le=MAX_CHOICES)


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """A translated text: the sentences of the source, and the candidates for each."""

    source: str
    spans: list[Span]
    candidates: list[list[Answer]]
    html: bool

    def text(self, rank: int = 0) -> str:
        """Return the whole translation, from the candidates of this rank, or the last ones there are."""
        chosen = [each[min(rank, len(each) - 1)]["text"] for each in self.candidates]
        return join(self.source, self.spans, chosen, html=self.html)


async def translate_texts(
    queue: Queue, client: str, texts: Sequence[str], task: Task, beginnings: Sequence[str] = (), *, html: bool = False
) -> list[TextAnswer]:
    """Translate texts, sentence by sentence."""
    if beginnings and len(beginnings) != len(texts):
        raise HTTPException(400, "beginnings must have one text for each text, which may be empty")
    is_long = sum(map(len, texts)) > MAX_QUICK_CHARACTERS
    spans = await asyncio.to_thread(_split, texts, html) if is_long else _split(texts, html)
    requests = []
    for text, places, beginning in zip(texts, spans, beginnings or [""] * len(texts), strict=True):
        if beginning and len(places) > 1:
            raise HTTPException(400, "beginnings: only texts of a single sentence can have one")
        found = [text[span.start : span.end] for span in places]
        requests += [Request(unescape(each) if html else each, beginning) for each in found]
    if task.details and sum(len(each.text.split()) ** 2 for each in requests) * task.nbest > MAX_DETAILS:
        raise HTTPException(413, "the answer would be too large: send less text, or ask for no details")
    answers = iter(await queue.ask(client, task, requests))
    return [
        TextAnswer(text, places, [next(answers)["candidates"] for _ in places], html)
        for text, places in zip(texts, spans, strict=True)
    ]


def _split(texts: Sequence[str], html: bool) -> list[list[Span]]:
    """Return the sentences of each text; refuse too many, of which the others are not looked for."""
    found, left = list[list[Span]](), MAX_SENTENCES
    for text in texts:
        found.append(list(islice(html_sentences(text) if html else sentences(text), left + 1)))
        left -= max(1, len(found[-1]))
        if left < 0:
            raise HTTPException(413, f"a request may not have more than {MAX_SENTENCES} sentences")
    return found


class Api:
    """The answers of a server with these models, the default one first."""

    def __init__(self, queues: Sequence[Queue], detector: Detector | None = None) -> None:
        """Without a detector, languages are detected only if all models read the same."""
        self.queues, self.detector = queues, detector
        self.pairs = [(each.model.facts.source, each.model.facts.target) for each in queues]

    async def libre_translate(self, body: LibreBody, client: str) -> Json:
        """Translate `q`, a text or a list of texts."""
        texts, source, detected = _listed(body.q), body.source, list[dict[str, Any]]()
        if source == "auto":
            detected = self._detected(texts, body.target)
            source = detected[0]["language"]
        if (source, body.target) not in self.pairs:
            raise HTTPException(400, "there is no model for these languages; GET /languages lists all")
        queue, task = self.queues[self.pairs.index((source, body.target))], Task(nbest=body.alternatives + 1)
        found = await translate_texts(queue, client, texts, task, html=body.format == "html")
        answer: dict[str, list[Any]] = {"translatedText": [each.text() for each in found]}
        if body.alternatives:
            ranks = range(body.alternatives + 1)
            answer["alternatives"] = [list(dict.fromkeys(map(each.text, ranks)))[1:] for each in found]
        if detected:
            answer["detectedLanguage"] = [detected[0]] * len(found)
        return answer if isinstance(body.q, list) else {name: values[0] for name, values in answer.items()}

    async def detect(self, body: LibreBody, _: str) -> Json:
        """Return the languages that `q` may be in, the most probable one first."""
        return self._detected(_listed(body.q))

    def _detected(self, texts: Sequence[str], target: str = "") -> list[dict[str, Any]]:
        """Return source languages with their confidence in percent; a single one is assumed without a detector."""
        codes = sorted({source for source, other in self.pairs if target in ("", other)})
        if not self.detector:
            if len(codes) != 1:
                raise HTTPException(400, "this server does not detect languages: name the source language")
            return [{"confidence": 0.0, "language": codes[0]}]
        probabilities = self.detector("\n".join(texts))
        found = [{"confidence": round(100 * probabilities.get(identified_code(code), 0), 2), "language": code}
                 for code in codes]  # fmt: skip
        return sorted(found, key=lambda each: -float(each["confidence"]))

    def languages(self) -> Json:
        """List the languages."""
        codes = dict.fromkeys(code for side in zip(*self.pairs, strict=True) for code in side)
        targets = {code: list(dict.fromkeys(to for source, to in self.pairs if source == code)) for code in codes}
        return [{"code": code, "name": language_name(code), "targets": targets[code]} for code in codes]

    def health(self) -> Json:
        """Say whether all models are loaded."""
        if not all(each.model.loaded.is_set() for each in self.queues):
            raise HTTPException(503, "a model is being loaded", RETRY)
        return {"status": "ok"}

    def models(self) -> Json:
        """List the models; the first is the default."""

        def shown(model: ModelProcess) -> dict[str, Any]:
            facts = {name: getattr(model.facts, name) for name in ("source", "target", "engine", "attention")}
            return {
                "name": model.name,
                **facts,
                "choices": facts["attention"],
                "default": model is self.queues[0].model,
            }

        return {"models": [shown(each.model) for each in self.queues]}

    async def translate(self, body: TranslateBody, client: str) -> Json:
        """Translate `text`, a text or a list of texts."""
        queue, task = self._queue(body), Task(body.nbest, body.details)
        found = await translate_texts(queue, client, _listed(body.text), task, body.beginnings)
        return {"model": queue.model.name, "translations": [_translation(each) for each in found]}

    async def choices(self, body: ChoicesBody, client: str) -> Json:
        """Return the words that are likely to come next in the translation of a sentence."""
        queue = self._queue(body)
        if not queue.model.facts.attention:
            name, engine = queue.model.name, queue.model.facts.engine
            raise HTTPException(400, f"model {name} cannot name its next words with engine={engine}")
        (found,) = await queue.ask(client, Task(choices=body.count), [Request(body.text, body.beginning)])
        return found

    def _queue(self, body: Body) -> Queue:
        for queue in self.queues:
            if body.model in (None, queue.model.name):
                return queue
        raise HTTPException(404, "there is no such model; GET /v1/models lists them")


def load_detector() -> Detector | None:
    """Return what detects languages; None if its package is not installed."""
    if not find_spec("py3langid"):
        return None
    identifier = language_identifier()
    return lambda text: {code: float(probability) for code, probability in identifier.rank(text[:MAX_DETECTED])}


def _listed(text: str | list[str]) -> list[str]:
    return [text] if isinstance(text, str) else text


def _translation(answer: TextAnswer) -> dict[str, Any]:
    """Return a translation; places in the text are UTF-16 code units, in which JavaScript counts."""
    text, found, place, units = answer.source, [], 0, 0
    for span, candidates in zip(answer.spans, answer.candidates, strict=True):
        source, start = text[span.start : span.end], units + _units(text[place : span.start])
        place, units = span.end, start + _units(source)
        found.append({"start": start, "end": units, "source": source, "candidates": candidates})
    return {"text": answer.text(), "sentences": found}


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
