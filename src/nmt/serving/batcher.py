"""The batches of a model: clients take turns, and sentences of similar length are translated together."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from nmt.decoding.translation import Request
from nmt.serving.messages import Answer, Batch, Failure, LostError, RequestError, Task, report_error
from nmt.serving.metrics import Metrics

MAX_WAITING = 2_000
"""Most sentences that wait for a model."""
MAX_BATCH = 64
"""Most sentences that are translated together."""
TURN_SECONDS, LONE_TURN_SECONDS = 0.1, 0.5
"""How long a batch may take, while several clients ask and while one does: a batch cannot be stopped."""
RECENT_SECONDS = 1.0
"""For this long after its last request a client counts as one that asks."""
QUIET_SECONDS = 0.1
"""For this long after its last request or answer, a client that has had less is waited for."""
DEBT_SECONDS = 60.0
"""For this long it is remembered that a client has had more than others."""
GATHER_SECONDS = 0.005
"""Time that an idle model waits for further sentences after the first."""
LENGTH_RATIO, LENGTH_SLACK = 2, 20
"""Sentences are translated together with the first if they are at most this many times as long or short, or differ by
at most this many characters."""
LONG_WORD = 30
"""Words of more characters may have a piece per character, instead of one for about four."""
FIRST_COST_PER_SECOND = 30_000.0
MAX_RETRY_SECONDS = 60


@dataclass(slots=True, eq=False)
class Share:
    """What a client, or one of its requests, has had of the model's time."""

    served: float
    """The cost of its sentences so far. One that begins to ask begins with `clock` of those it shares with."""
    clock: float = 0.0
    """`served` of the part whose turn was last."""
    heard: float = field(default_factory=time.monotonic)


@dataclass(slots=True, eq=False)
class Waiting:
    """A sentence that waits for its translation."""

    task: Task
    request: Request
    cost: float
    client: Share
    share: Share
    """That of its request."""
    answer: asyncio.Future[Answer]
    lost: bool = False
    """Whether it was in a batch that was lost. It is translated once more, alone: if it was the reason, no other
    sentence fails with it."""


def cost_of(task: Task, request: Request, hypotheses: int) -> float:
    """Return about how much there is to compute: characters times hypotheses.

    What the translation must contain counts more, because the search takes a step for each of its pieces.
    """
    required = len(request.beginning) + sum(map(len, request.terms))
    long_words = sum(len(word) for word in request.text.split() if len(word) > LONG_WORD)
    characters = 20 + len(request.text) + 3 * long_words + 8 * required
    return characters * max(hypotheses, task.nbest, task.choices) * (2 if task.details else 1)


class Batcher:
    """The sentences that wait for a model."""

    def __init__(
        self, name: str, run: Callable[[Batch], Awaitable[list[Answer | Failure]]], hypotheses: int, metrics: Metrics
    ) -> None:
        """Pass batches to `run`, which returns an answer per sentence, or raises LostError."""
        self.name, self.run, self.hypotheses, self.metrics = name, run, hypotheses, metrics
        self.waiting: list[Waiting] = []
        self.clients: dict[str, Share] = {}
        self.all = Share(0.0)
        self.cost_per_second = FIRST_COST_PER_SECOND
        self._arrived = asyncio.Event()

    def add(self, client: str, task: Task, requests: Sequence[Request]) -> list[asyncio.Future[Answer]]:
        """Queue the sentences of a request and return their future answers.

        If there is no room, the client with the most sentences gives way: the newest of them are refused.
        """
        loop, now = asyncio.get_running_loop(), time.monotonic()
        self._forget(now)
        share = self.clients.setdefault(client, Share(self.all.clock))
        share.heard = now
        part = Share(share.clock)
        added = [
            Waiting(task, each, cost_of(task, each, self.hypotheses), share, part, loop.create_future())
            for each in requests
        ]
        self.waiting += added
        while len(self.waiting) > MAX_WAITING:
            self._refuse_newest_of_largest()
        self._arrived.set()
        return [each.answer for each in added]

    async def work(self) -> None:
        """Translate what arrives until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(GATHER_SECONDS)
            if batch := self.take():
                await self._translate(batch)
            if not self.waiting:
                self._arrived.clear()

    def take(self) -> list[Waiting]:
        """Remove and return the sentence whose turn it is, with others of the same task and of similar length."""
        now = time.monotonic()
        self._forget(now)
        if not self.waiting:
            return []
        order = sorted(self.waiting, key=lambda each: (each.client.served, each.share.served))
        first, several = order[0], sum(now - each.heard < RECENT_SECONDS for each in self.clients.values()) > 1
        room = self.cost_per_second * (TURN_SECONDS if several else LONE_TURN_SECONDS)
        others = [each.served for each in self.clients.values() if now - each.heard < QUIET_SECONDS]
        if others and min(others) + room < first.client.served:
            return []  # a client that has had less was just answered, and may ask again in a moment
        self.all.clock, first.client.clock = first.client.served, first.share.served
        chosen = [first, *takewhile(_within(room - first.cost), (each for each in order[1:] if _fits(each, first)))]
        for each in chosen[:MAX_BATCH]:
            each.client.served += each.cost
            each.share.served += each.cost
            self.waiting.remove(each)
        return chosen[:MAX_BATCH]

    def refuse_all(self, failure: Failure) -> None:
        """Refuse all sentences that wait."""
        for each in self.waiting:
            _give(each, failure)

    def retry_seconds(self) -> int:
        """Return after how many seconds half of the queue will be free again."""
        seconds = sum(each.cost for each in self.waiting) / 2 / self.cost_per_second
        return min(MAX_RETRY_SECONDS, max(1, math.ceil(seconds)))

    async def _translate(self, batch: list[Waiting]) -> None:
        began = time.monotonic()
        try:
            answers = await self.run(Batch(batch[0].task, [each.request for each in batch]))
        except LostError:
            answers = self._try_again(batch)
        except Exception as error:  # any error: the queue goes on
            report_error(error)
            answers = [Failure("the server failed")] * len(batch)
        else:
            seconds, cost = max(time.monotonic() - began, 1e-3), sum(each.cost for each in batch)
            late = seconds * self.cost_per_second / cost - 1
            for each in batch:  # clients share the time that sentences took, not what they seemed to cost
                each.client.heard = time.monotonic()
                each.client.served += late * each.cost
                each.share.served += late * each.cost
            self.cost_per_second += 0.1 * (cost / seconds - self.cost_per_second)
            self.metrics.batches.labels(self.name).observe(seconds)
        for each, found in zip(batch, answers, strict=False):
            _give(each, found)

    def _try_again(self, batch: list[Waiting]) -> list[Answer | Failure]:
        """Queue the sentences of a lost batch again; one that was lost alone is the reason, and fails."""
        self.metrics.restarts.labels(self.name).inc()
        if batch[0].lost:
            return [Failure("the model failed")]  # not 503, after which a proxy would send it to the next server
        for each in batch:
            each.lost = True
        self.waiting += batch
        return []

    def _forget(self, now: float) -> None:
        """Drop the sentences of requests that have ended, and clients that no longer ask."""
        self.waiting = [each for each in self.waiting if not each.answer.done()]
        asking = {id(each.client) for each in self.waiting}
        for name, share in [*self.clients.items()]:
            silent, has_debt = now - share.heard, share.served > self.all.clock
            if id(share) not in asking and silent > (DEBT_SECONDS if has_debt else RECENT_SECONDS):
                del self.clients[name]

    def _refuse_newest_of_largest(self) -> None:
        """Refuse the newest request of the client with the most sentences."""
        (largest, _), *_ = Counter(each.client for each in self.waiting).most_common(1)
        newest = deque((each for each in self.waiting if each.client is largest), 1)[0].share
        refusal = Failure("the server is busy: try again later", 429, {"Retry-After": str(self.retry_seconds())})
        for each in self.waiting:
            if each.share is newest:
                _give(each, refusal)
        self.waiting = [each for each in self.waiting if each.share is not newest]


def _within(room: float) -> Callable[[Waiting], bool]:
    """Return what is true for sentences as long as they cost no more than `room` together."""
    cost = 0.0

    def fits(each: Waiting) -> bool:
        nonlocal cost
        cost += each.cost
        return cost <= room

    return fits


def _fits(each: Waiting, first: Waiting) -> bool:
    if each.lost or first.lost:
        return False
    shorter, longer = sorted((len(each.request.text), len(first.request.text)))
    return each.task == first.task and longer <= max(LENGTH_RATIO * shorter, shorter + LENGTH_SLACK)


def _give(each: Waiting, found: Answer | Failure) -> None:
    """Pass an answer on, unless its client is gone."""
    if each.answer.done():
        return
    if isinstance(found, Failure):
        each.answer.set_exception(RequestError(found.status, found.message, found.headers))
    else:
        each.answer.set_result(found)
