"""The models of the server, and what they do with whole texts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Protocol

from nmt.decoding.translation import Request
from nmt.serving.batcher import Batcher
from nmt.serving.messages import RETRY, Answer, Batch, Failure, ModelFacts, RequestError, Task
from nmt.serving.metrics import Metrics
from nmt.serving.text import Span, join, split
from nmt.text.glossary import Glossary

MAX_TERM_CHARACTERS = 300
"""The most characters of the terms that one translation must contain: each may be a step of the search."""
MAX_DETAILS = 2_000_000
"""The most entries of attention in an answer, each of a few bytes."""
MAX_QUICK_CHARACTERS = 10_000
"""The longest texts that are split immediately; others are split in a thread, so that nobody waits."""


class Runner(Protocol):
    """Runs batches: the process of a model."""

    name: str

    @property
    def ready(self) -> bool:
        """Whether it takes batches."""

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model."""

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        """Return an answer per sentence, or raise LostError."""


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """A translated text: the sentences of the source, and the candidates for each."""

    source: str
    spans: list[Span]
    candidates: list[list[Answer]]
    html: bool = False

    def text(self, rank: int = 0) -> str:
        """Return the whole translation, from the candidates of this rank, or the last ones there are."""
        chosen = [each[min(rank, len(each) - 1)]["text"] for each in self.candidates]
        return join(self.source, self.spans, chosen, html=self.html)


class Model:
    """A model with the batches of its sentences."""

    def __init__(self, runner: Runner, metrics: Metrics) -> None:
        self.name, self.runner, self.metrics = runner.name, runner, metrics
        self.batcher = Batcher(runner.name, runner.run, runner.facts.hypotheses, metrics)

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model."""
        return self.runner.facts

    def check_offers(self, *, terms: bool = False, choices: bool = False) -> None:
        """Refuse what the model cannot do."""
        if terms and not self.facts.terms:
            raise RequestError(400, f"model {self.name} cannot require terms with its engine and search")
        if choices and not self.facts.attention:
            raise RequestError(400, f"model {self.name} cannot name its next words with engine={self.facts.engine}")

    async def ask(self, client: str, task: Task, requests: Sequence[Request]) -> list[Answer]:
        """Return an answer per sentence; if the caller is cancelled, its sentences are dropped.

        While the process of the model is replaced, what waits goes on waiting; what comes is refused.
        """
        if not self.runner.ready:
            raise RequestError(503, "the model is being restarted: try again", RETRY)
        answers = self.batcher.add(client, task, requests)
        self.metrics.sentences.labels(self.name).inc(len(requests))
        try:
            return await asyncio.gather(*answers)
        finally:
            for each in answers:
                each.cancel()

    async def translate(
        self,
        client: str,
        texts: Sequence[str],
        task: Task,
        *,
        beginnings: Sequence[str] = (),
        terms: Sequence[tuple[str, str]] = (),
        html: bool = False,
    ) -> list[TextAnswer]:
        """Translate texts, sentence by sentence."""
        self.check_offers(terms=bool(terms))

        def prepare() -> tuple[list[list[Span]], list[Request]]:
            spans = split(texts, html=html)
            return spans, requests_for(texts, spans, beginnings, Glossary(dict(terms)), html=html)

        quick = sum(map(len, texts)) * (1 + len(terms)) <= MAX_QUICK_CHARACTERS
        spans, requests = prepare() if quick else await asyncio.to_thread(prepare)
        if task.details and sum(len(each.text.split()) ** 2 for each in requests) * task.nbest > MAX_DETAILS:
            raise RequestError(413, "the answer would be too large: send less text, or ask for no details")
        answers = iter(await self.ask(client, task, requests))
        return [
            TextAnswer(text, places, [next(answers)["candidates"] for _ in places], html)
            for text, places in zip(texts, spans, strict=True)
        ]


def requests_for(
    texts: Sequence[str], spans: Sequence[Sequence[Span]], beginnings: Sequence[str], glossary: Glossary, *, html: bool
) -> list[Request]:
    """Return what is asked of the model for each sentence of each text."""
    requests = []
    for index, (text, places) in enumerate(zip(texts, spans, strict=True)):
        beginning = beginnings[index] if beginnings else ""
        if beginning and len(places) > 1:
            raise RequestError(400, "beginnings: only texts of a single sentence can have one")
        for place in places:
            sentence = text[place.start : place.end]
            sentence = unescape(sentence) if html else sentence
            terms = glossary.find(sentence)
            if sum(map(len, terms)) > MAX_TERM_CHARACTERS:
                raise RequestError(413, f"the terms of a sentence may have at most {MAX_TERM_CHARACTERS} characters")
            requests.append(Request(sentence, beginning, terms))
    return requests
