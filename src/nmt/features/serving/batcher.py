"""Collect the sentences of all clients, and pass those of similar length to the model together."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from nmt.decoding.request import Request
from nmt.features.serving.cost import cost_of
from nmt.features.serving.errors import LostError, RequestError, report_error
from nmt.features.serving.metrics import Metrics
from nmt.features.serving.requests import Answer, Batch, Failure, Task
from nmt.features.serving.settings import ServeConfig

SECONDS_PER_COST = 3e-5
"""A sentence's turn is the time of its arrival, and later by this much for the cost of each sentence before it in its
request: about 0.01 s for an ordinary one. So a long or expensive text does not hold up the short texts of others, and
nothing can be overtaken for ever."""
LENGTH_RATIO, LENGTH_SLACK = 2, 20
"""Sentences are translated together with the one whose turn it is if they are at most this many times as long or short,
or differ by at most this many characters."""
MAX_BATCH_COST = 50_000
"""The largest cost of sentences that are translated together: 64 sentences of 175 characters with four hypotheses. A
batch cannot be stopped, so one that takes longer than its clients wait would cost a process."""
MAX_RETRY_SECONDS = 60
FIRST_RATE = 50.0
"""Sentences per second, until they have been measured."""


@dataclass(slots=True)
class Waiting:
    """A sentence that waits for its translation."""

    task: Task
    request: Request
    turn: float
    answer: asyncio.Future[Answer]
    lost: bool = False
    """Whether it was in a batch that was lost. It is translated once more, alone: if it was the reason, it harms no
    other sentence again."""

    @property
    def length(self) -> int:
        """The number of characters."""
        return len(self.request.text)


class Batcher:
    """The queue of a model."""

    def __init__(
        self,
        name: str,
        config: ServeConfig,
        run: Callable[[Batch], Awaitable[list[Answer | Failure]]],
        metrics: Metrics,
        parallel: int = 1,
    ) -> None:
        """Pass batches to `run`, which returns an answer per sentence, or raises RequestError or LostError for all.

        `parallel` is the number of batches that run at the same time.
        """
        self.config, self.run, self.metrics, self.parallel = config, run, metrics, parallel
        self._waiting_sentences = metrics.waiting.labels(name)
        self.waiting: list[Waiting] = []
        self.sentences_per_second = FIRST_RATE
        """The speed of one batch; others run at the same time."""
        self._running = 0
        self._arrived = asyncio.Event()

    def add(self, task: Task, requests: Sequence[Request]) -> list[asyncio.Future[Answer]]:
        """Queue the sentences of a request and return their future answers; refuse all if there is no room."""
        self._forget_cancelled()
        if len(self.waiting) + len(requests) > self.config.queue:
            raise RequestError(429, "the server is busy: try again later", {"Retry-After": str(self.retry_seconds())})
        costs = [cost_of(task, [request]) for request in requests]
        now, loop = time.monotonic(), asyncio.get_running_loop()
        added = [
            Waiting(task, request, now + SECONDS_PER_COST * before, loop.create_future())
            for before, request in zip(accumulate(costs, initial=0), requests, strict=False)
        ]
        self.waiting += added
        self._waiting_sentences.set(len(self.waiting))
        self._arrived.set()
        return [each.answer for each in added]

    def retry_seconds(self) -> int:
        """Return after how many seconds half of the queue will be free again."""
        rate = self.sentences_per_second * self.parallel
        return min(MAX_RETRY_SECONDS, max(1, math.ceil(len(self.waiting) / 2 / rate)))

    async def work(self) -> None:
        """Translate what arrives until cancelled."""
        await asyncio.gather(*(self._work() for _ in range(self.parallel)))

    async def _work(self) -> None:
        """Translate batch by batch."""
        while True:
            await self._arrived.wait()
            self._forget_cancelled()
            if 0 < len(self.waiting) < self.config.batch and self.config.wait_ms:
                await asyncio.sleep(self.config.wait_ms / 1000)
            batch = self.take()
            if batch:
                await self._translate(batch)
            if not self.waiting:
                self._arrived.clear()

    def take(self) -> list[Waiting]:
        """Remove and return the sentence whose turn it is, with others of the same task and of similar length.

        Batches that run at the same time share the sentences equally.
        """
        self._forget_cancelled()
        self.waiting.sort(key=lambda each: each.turn)
        share = math.ceil((len(self.waiting) + self._running) / self.parallel)
        fitting = [each for each in self.waiting if _fits(each, self.waiting[0])]
        chosen = _affordable(fitting[: min(share, self.config.batch)])
        identities = set(map(id, chosen))
        self.waiting = [each for each in self.waiting if id(each) not in identities]
        self._waiting_sentences.set(len(self.waiting))
        return chosen

    async def _translate(self, batch: list[Waiting]) -> None:
        began = time.monotonic()
        self._running += len(batch)
        try:
            answers = await self.run(Batch(batch[0].task, [each.request for each in batch]))
        except LostError:
            self._try_again(batch)
            return
        except RequestError as error:
            answers = [Failure(error.message, error.status, error.headers)] * len(batch)
        except Exception as error:  # any error: the queue goes on
            report_error(error)
            answers = [Failure("the server failed", 500)] * len(batch)
        finally:
            self._running -= len(batch)
        for each, answer in zip(batch, answers, strict=True):
            _give(each.answer, answer)
        seconds = max(time.monotonic() - began, 1e-3)
        self.sentences_per_second += 0.1 * (len(batch) / seconds - self.sentences_per_second)
        self.metrics.batch_sentences.observe(len(batch))
        self.metrics.batch_seconds.observe(seconds)

    def _try_again(self, batch: Sequence[Waiting]) -> None:
        """Queue sentences of a lost batch again; those that were lost alone are the reason, and fail."""
        for each in batch:
            if each.lost:  # not 503, after which a proxy would send it to the next server
                _give(each.answer, Failure("the model failed", 500))
            else:
                each.lost = True
                self.waiting.append(each)
        self._arrived.set()

    def _forget_cancelled(self) -> None:
        """Drop the sentences of clients that are gone."""
        self.waiting = [each for each in self.waiting if not each.answer.done()]


def _give(future: asyncio.Future[Answer], answer: Answer | Failure) -> None:
    """Pass an answer on, unless its client is gone."""
    if future.done():
        return
    if isinstance(answer, Failure):
        future.set_exception(RequestError(answer.status, answer.message, answer.headers))
    else:
        future.set_result(answer)


def _affordable(sentences: list[Waiting]) -> list[Waiting]:
    """Return the first sentence, and those after it that do not cost too much together."""
    cost = 0
    for number, each in enumerate(sentences):
        cost += cost_of(each.task, [each.request])
        if number and cost > MAX_BATCH_COST:
            return sentences[:number]
    return sentences


def _fits(each: Waiting, first: Waiting) -> bool:
    if each.lost or first.lost:
        return each is first
    shorter, longer = sorted((each.length, first.length))
    return each.task == first.task and longer <= max(LENGTH_RATIO * shorter, shorter + LENGTH_SLACK)
