"""Collect the sentences of all clients, and pass those of similar length to the model together."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from nmt.config.commands import ServeConfig
from nmt.decoding.request import Request
from nmt.serving.cost import work_of
from nmt.serving.errors import LostError, RequestError, report_error
from nmt.serving.metrics import Metrics
from nmt.serving.requests import Answer, Batch, Failure, Task

SLOWDOWN = 4
"""How many times as long as alone a long or expensive request takes while others ask: it gets a quarter of the model's
time."""
FREE_COST = 2_500
"""The cost of the first sentences of a request, whose turn comes immediately: that of the longest sentence, translated
as usual. The turn of a later sentence comes when SLOWDOWN times the computing time of the request so far has passed
since its arrival. So long or expensive texts do not hold up others, and nothing can be overtaken for ever."""
QUIET_SECONDS = 0.1
"""For this long after each request and each answer, only sentences whose turn has come are translated, because a client
may send one that should come first, and a batch cannot be stopped."""
PAUSE_SECONDS = 0.01
"""Seconds between two looks for sentences whose turn has come."""
LENGTH_RATIO, LENGTH_SLACK = 2, 20
"""Sentences are translated together with the one whose turn it is if they are at most this many times as long or short,
or differ by at most this many characters."""
MAX_BATCH_COST = 50_000
"""The largest cost of sentences that are translated together: 64 sentences of 175 characters with four hypotheses. A
batch cannot be stopped, so one that takes longer than its clients wait would cost a process."""
MAX_RETRY_SECONDS = 60
FIRST_RATE = 50.0
"""Sentences per second, until they have been measured."""
FIRST_SECONDS, FIRST_COST = 1.0, 30_000.0
"""The time of one batch, and its cost, until they have been measured."""
KEPT = 0.9
"""The share that earlier batches keep in measurements, after each batch."""


@dataclass(slots=True)
class Waiting:
    """A sentence that waits for its translation."""

    task: Task
    request: Request
    cost: int
    """How much there may be to compute for it."""
    turn: float
    answer: asyncio.Future[Answer]
    ends_request: bool
    """Whether it is the last sentence of its request, after which its client may ask again."""
    lost: bool = False
    """Whether it was in a batch that was lost. It is translated once more, alone and not in a half of the batch: if it
    was the reason, no other sentence fails with it."""

    @property
    def length(self) -> int:
        """The number of characters."""
        return len(self.request.text)


WAIT_SECONDS = 0.005
"""Time that an idle model waits for further sentences after the first."""


class Batcher:
    """The queue of a model."""

    def __init__(
        self,
        name: str,
        config: ServeConfig,
        run: Callable[[Batch], Awaitable[list[Answer | Failure]]],
        metrics: Metrics,
        hypotheses: int,
        parallel: int = 1,
    ) -> None:
        """Pass batches to `run`, which returns an answer per sentence, or raises RequestError or LostError for all.

        `hypotheses` are those per sentence of the model's own search; `parallel` batches run at the same time.
        """
        self.config, self.run, self.metrics, self.parallel = config, run, metrics, parallel
        self.hypotheses = hypotheses
        self._waiting_sentences = metrics.waiting.labels(name)
        self.waiting: list[Waiting] = []
        self.sentences_per_second = FIRST_RATE
        """The speed of one batch; others run at the same time."""
        self._seconds, self._cost = FIRST_SECONDS, FIRST_COST
        self._last_heard = -math.inf
        """When the last request came, or its answer was complete."""
        self._running = 0
        self._arrived = asyncio.Event()

    def add(self, task: Task, requests: Sequence[Request]) -> list[asyncio.Future[Answer]]:
        """Queue the sentences of a request and return their future answers; refuse all if there is no room."""
        self._forget_cancelled()
        if len(self.waiting) + len(requests) > self.config.queue:
            raise RequestError(429, "the server is busy: try again later", {"Retry-After": str(self.retry_seconds())})
        costs = [work_of(task, [request], self.hypotheses) for request in requests]
        now, loop = time.monotonic(), asyncio.get_running_loop()
        seconds_per_cost = SLOWDOWN * self._seconds / self._cost / self.parallel
        turns = [now + seconds_per_cost * max(0, total - FREE_COST) for total in accumulate(costs)]
        added = [
            Waiting(task, request, cost, turn, loop.create_future(), ends_request=number == len(requests))
            for number, (request, cost, turn) in enumerate(zip(requests, costs, turns, strict=True), 1)
        ]
        self._last_heard = now
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
            if 0 < len(self.waiting) < self.config.batch and WAIT_SECONDS:
                await asyncio.sleep(WAIT_SECONDS)
            batch = self.take()
            if batch:
                await self._translate(batch)
            elif self.waiting:
                await asyncio.sleep(PAUSE_SECONDS)
            if not self.waiting:
                self._arrived.clear()

    def take(self) -> list[Waiting]:
        """Remove and return the sentence whose turn it is, with others of the same task and of similar length.

        Batches that run at the same time share the sentences equally. Nothing is returned if it is better to wait.
        """
        self._forget_cancelled()
        ready = sorted(self._ready(), key=lambda each: each.turn)
        fitting = [each for each in ready if _fits(each, ready[0])]
        share = math.ceil((len(fitting) + self._running) / self.parallel)
        chosen = _affordable(fitting[: min(share, self.config.batch)])
        identities = set(map(id, chosen))
        self.waiting = [each for each in self.waiting if id(each) not in identities]
        self._waiting_sentences.set(len(self.waiting))
        return chosen

    def _ready(self) -> list[Waiting]:
        """Return the sentences whose turn has come, and all of them if no client has been heard of lately."""
        now = time.monotonic()
        if now - self._last_heard > QUIET_SECONDS:
            return self.waiting
        return [each for each in self.waiting if each.turn <= now]

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
        self._measure(batch, seconds)
        if any(each.ends_request for each in batch):
            self._last_heard = time.monotonic()
        self.metrics.batch_sentences.observe(len(batch))
        self.metrics.batch_seconds.observe(seconds)

    def _measure(self, batch: Sequence[Waiting], seconds: float) -> None:
        """Adapt the measured speed to a batch."""
        self.sentences_per_second += (1 - KEPT) * (len(batch) / seconds - self.sentences_per_second)
        self._seconds = KEPT * self._seconds + seconds
        self._cost = KEPT * self._cost + sum(each.cost for each in batch)

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
        cost += each.cost
        if number and cost > MAX_BATCH_COST:
            return sentences[:number]
    return sentences


def _fits(each: Waiting, first: Waiting) -> bool:
    if each.lost or first.lost:
        return each is first
    shorter, longer = sorted((each.length, first.length))
    return each.task == first.task and longer <= max(LENGTH_RATIO * shorter, shorter + LENGTH_SLACK)
