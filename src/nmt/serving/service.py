"""The models of the server by name, and what they do with whole texts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nmt.config.commands import ServeConfig
from nmt.decoding.request import Request
from nmt.serving import markup
from nmt.serving.batcher import Batcher
from nmt.serving.cost import cost_of
from nmt.serving.errors import RequestError, unavailable
from nmt.serving.metrics import Metrics
from nmt.serving.requests import Answer, Batch, Failure, ModelFacts, Task
from nmt.serving.sentences import Span, join
from nmt.serving.splitting import Terms, requests_for, split

MAX_QUICK_CHARACTERS = 10_000
"""The longest texts without terms that are split immediately; others are split in a thread, so that nobody waits. Each
term makes the text count once more."""


class Runner(Protocol):
    """Runs batches: the processes of a model."""

    @property
    def parallel(self) -> int:
        """How many batches it runs at the same time."""

    @property
    def ready(self) -> bool:
        """Whether it takes batches."""

    @property
    def facts(self) -> ModelFacts:
        """What clients may know of the model."""

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        """Return an answer per sentence, or raise RequestError for all of them."""


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """A sentence of a text, and what the model answered."""

    span: Span
    candidates: list[Answer]


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """A translated text."""

    source: str
    sentences: list[SentenceAnswer]
    html: bool = False

    def text(self, rank: int = 0) -> str:
        """Return the whole translation, from the candidates of this rank, or the last ones there are."""
        chosen = [each.candidates[min(rank, len(each.candidates) - 1)]["text"] for each in self.sentences]
        written = [markup.to_html(text) for text in chosen] if self.html else chosen
        return join(self.source, [each.span for each in self.sentences], written)


class Model:
    """A model with its queue."""

    def __init__(self, name: str, config: ServeConfig, runner: Runner, metrics: Metrics) -> None:
        self.name, self.config, self.runner, self.metrics = name, config, runner, metrics
        self.batcher = Batcher(name, config, runner.run, metrics, runner.facts.hypotheses, runner.parallel)

    @property
    def facts(self) -> ModelFacts:
        """What clients may know of the model."""
        return self.runner.facts

    async def ask(self, task: Task, requests: Sequence[Request]) -> list[Answer]:
        """Return an answer per sentence; if the caller is cancelled, the sentences leave the queue.

        What already waits when the last process of the model ends goes on waiting; what comes later is refused.
        """
        if (cost := cost_of(task, requests, self.facts.hypotheses)) > self.config.cost_limit:
            raise RequestError(
                413,
                f"the request costs {cost}, more than {self.config.cost_limit} (characters times hypotheses, and "
                "details of words): send less text, or ask for fewer candidates, a smaller beam or no details",
            )
        if not self.runner.ready:
            raise unavailable()
        answers = self.batcher.add(task, requests)
        self.metrics.sentences.labels(self.name).inc(len(requests))
        self.metrics.characters.labels(self.name).inc(sum(len(each.text) for each in requests))
        try:
            return await asyncio.gather(*answers)
        except BaseException:
            for each in answers:
                each.cancel()
            raise


class Service:
    """All models of the server; the first is the default."""

    def __init__(self, config: ServeConfig, models: Sequence[Model], metrics: Metrics) -> None:
        self.config, self.models, self.metrics = config, list(models), metrics

    def model(self, name: str | None = None) -> Model:
        """Return a model by its name, or the default one."""
        for model in self.models:
            if name in (None, model.name):
                return model
        raise RequestError(404, "there is no such model; GET /v1/models lists them")

    async def translate(
        self,
        model: Model,
        texts: Sequence[str],
        task: Task,
        *,
        beginnings: Sequence[str] | None = None,
        terms: Terms = (),
        html: bool = False,
    ) -> list[TextAnswer]:
        """Translate texts, sentence by sentence."""
        _check_offered(model, "aligns no words", asked=task.alignments, offered=model.facts.attention)
        _check_offered(model, "cannot require terms", asked=bool(terms), offered=model.facts.terms)

        def prepare() -> tuple[list[list[Span]], list[Request]]:
            spans = split(texts, self.config.max_sentences, html=html)
            return spans, requests_for(texts, spans, beginnings, terms, html=html)

        quick = sum(map(len, texts)) * (1 + len(terms)) <= MAX_QUICK_CHARACTERS
        spans, requests = prepare() if quick else await asyncio.to_thread(prepare)
        answers = iter(await model.ask(task, requests))
        return [
            TextAnswer(text, [SentenceAnswer(span, next(answers)["candidates"]) for span in places], html)
            for text, places in zip(texts, spans, strict=True)
        ]

    async def choices(self, model: Model, sentence: str, beginning: str, count: int) -> list[Answer]:
        """Return the words that are likely to come next."""
        _check_offered(model, "cannot name its next words", asked=True, offered=model.facts.choices)
        (found,) = await model.ask(Task(choices=count), [Request(sentence, beginning)])
        choices: list[Answer] = found["choices"]
        return choices


def _check_offered(model: Model, refusal: str, *, asked: bool, offered: bool) -> None:
    if asked and not offered:
        engine = model.facts.engine
        raise RequestError(400, f"model {model.name} {refusal} with engine={engine} and its search; ask another model")
