"""The sentences that wait for a model: clients take turns, and sentences of similar length are translated together."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_low

import prometheus_client as prometheus
from starlette.exceptions import HTTPException

from nmt.decoding.translation import Request
from nmt.serving.messages import RETRY, Answer, Task, report_error
from nmt.serving.process import ModelProcess

SENTENCES = prometheus.Counter("nmt_sentences", "Sentences accepted", ["model"])
BATCH_SECONDS = prometheus.Histogram("nmt_batch_seconds", "Seconds per batch", ["model"])
MAX_WAITING = 2_000
"""Most sentences that wait for a model."""
MAX_BATCH = 64
"""Most sentences that are translated together."""
TURN_SECONDS, LONE_TURN_SECONDS = 0.1, 0.5
"""How long a batch may take, while several clients ask and while one does: a batch cannot be stopped."""
RECENT_SECONDS = 1.0
"""For this long after its last request or answer a client counts as one that asks."""
QUIET_SECONDS = 0.1
"""For this long after an answer to a client that has had less, one that has had more than most waits for it."""
DEBT_SECONDS = 60.0
"""For this long it is remembered how much of the model's time a client has had."""
GATHER_SECONDS = 0.005
"""Time that an idle model waits for further sentences after the first."""
LENGTH_RATIO, LENGTH_SLACK = 2, 20
"""Sentences are translated together with the first if they are at most this many times as long or short, or differ by
at most this many characters."""
FIRST_COST_PER_SECOND = 30_000.0
BEGINNING_COST = 8
"""The search takes a step for each piece with which a translation must begin."""


@dataclass(slots=True, eq=False)
class Share:
    """What a client, or one of its requests, has had of the model's time."""

    served: float = 0.0
    """Seconds. One that begins to ask begins with `clock` of those it shares with."""
    clock: float = 0.0
    """`served` of the part whose turn was last."""
    heard: float = field(default_factory=time.monotonic)
    """When it last asked or was answered."""
    answered: float = -math.inf


@dataclass(slots=True, eq=False)
class Waiting:
    """A sentence that waits for its translation."""

    task: Task
    request: Request
    cost: float
    """About how much there is to compute: characters times hypotheses."""
    client: Share
    part: Share
    """The share of its request in what its client has had."""
    answer: asyncio.Future[Answer]

    @property
    def turn(self) -> tuple[float, float]:
        """The smallest one comes first."""
        return self.client.served, self.part.served

    def fits(self, first: "Waiting") -> bool:
        """Return whether it can be translated together with another."""
        shorter, longer = sorted((len(self.request.text), len(first.request.text)))
        return self.task == first.task and longer <= max(LENGTH_RATIO * shorter, shorter + LENGTH_SLACK)

    def refuse(self, status: int, message: str) -> None:
        """Answer with an error, unless the client is gone."""
        if not self.answer.done():
            self.answer.set_exception(HTTPException(status, message, None if status == 500 else RETRY))


class Queue:
    """A model and the sentences that wait for it."""

    def __init__(self, model: ModelProcess) -> None:
        self.model = model
        self.waiting: list[Waiting] = []
        self.clients: dict[str, Share] = {}
        self.all = Share()
        self.cost_per_second = FIRST_COST_PER_SECOND
        self._arrived = asyncio.Event()

    async def ask(self, client: str, task: Task, requests: Sequence[Request]) -> list[Answer]:
        """Return an answer per sentence; if the caller is cancelled, its sentences are dropped."""
        if not self.model.loaded.is_set():
            raise HTTPException(503, "the model is being restarted: try again", RETRY)
        answers = [each.answer for each in self.add(client, task, requests)]
        try:
            return await asyncio.gather(*answers)
        finally:
            for each in answers:
                each.cancel()

    def add(self, client: str, task: Task, requests: Sequence[Request]) -> list[Waiting]:
        """Queue the sentences of a request.

        If there is no room, the client with the most sentences gives way: the newest of its requests are refused.
        """
        now, loop = time.monotonic(), asyncio.get_running_loop()
        self.clients = {name: each for name, each in self.clients.items() if now - each.heard < DEBT_SECONDS}
        mine = self.clients.setdefault(client, Share(self.all.clock))
        if now - mine.heard > RECENT_SECONDS:
            mine.served = max(mine.served, self.all.clock)
        mine.heard, part = now, Share(mine.clock)
        hypotheses = max(self.model.facts.hypotheses, task.nbest, task.choices) * (4 if task.details else 1)
        added = []
        for each in requests:
            cost = (20 + len(each.text) + BEGINNING_COST * len(each.beginning)) * hypotheses
            added.append(Waiting(task, each, cost, mine, part, loop.create_future()))
        self.waiting += added
        while len(self.waiting) > MAX_WAITING:
            ((largest, _),) = Counter(each.client for each in self.waiting).most_common(1)
            newest = [each.part for each in self.waiting if each.client is largest][-1]
            for refused in [each for each in self.waiting if each.part is newest]:
                refused.refuse(429, "the server is busy: try again later")
                self.waiting.remove(refused)
        SENTENCES.labels(self.model.name).inc(len(requests))
        self._arrived.set()
        return added

    def take(self) -> list[Waiting]:
        """Remove and return the sentence whose turn it is, with others of the same task and of similar length."""
        self.waiting = sorted((each for each in self.waiting if not each.answer.done()), key=lambda each: each.turn)
        if not self.waiting:
            return []
        now, first = time.monotonic(), self.waiting[0]
        clients = [each for each in self.clients.values() if now - each.heard < RECENT_SECONDS]
        seconds = TURN_SECONDS if len(clients) > 1 else LONE_TURN_SECONDS
        excess = first.client.served - seconds
        if any(now - each.answered < QUIET_SECONDS and each.served < excess for each in clients) and (
            excess > median_low(each.served for each in clients)
        ):
            return []  # a client that has had less was just answered, and may ask again in a moment
        self.all.clock, first.client.clock = first.turn
        chosen, cost = [first], first.cost
        for each in self.waiting[1:]:
            if each.client.served > first.client.served + seconds:
                break  # it has had more than its share: its sentences would only make the answers of others late
            if each.fits(first):
                cost += each.cost
                if cost > seconds * self.cost_per_second or len(chosen) == MAX_BATCH:
                    break
                chosen.append(each)
        taken = set(chosen)
        self.waiting = [each for each in self.waiting if each not in taken]
        return chosen

    async def work(self) -> None:
        """Translate what arrives until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(GATHER_SECONDS)
            if batch := self.take():
                await self._translate(batch)
            if not self.waiting:
                self._arrived.clear()

    async def _translate(self, batch: Sequence[Waiting]) -> None:
        """Answer the sentences of a batch, and divide the time that it took among their clients and requests."""
        began, cost = time.monotonic(), sum(each.cost for each in batch)
        try:
            answers = await self.model.run(batch[0].task, [each.request for each in batch])
        except Exception as error:  # any error: the queue goes on
            report_error(error)
            answers = [HTTPException(500, "the server failed")] * len(batch)
        now = time.monotonic()
        seconds = max(now - began, 1e-3)
        self.cost_per_second += 0.1 * (cost / seconds - self.cost_per_second)
        BATCH_SECONDS.labels(self.model.name).observe(seconds)
        for each, found in zip(batch, answers, strict=True):
            each.client.heard = now
            each.client.served += seconds * each.cost / cost
            each.part.served += seconds * each.cost / cost
            if isinstance(found, HTTPException):
                each.refuse(found.status_code, found.detail)
            elif not each.answer.done():
                each.answer.set_result(found)
                each.client.answered = now

    def refuse_all(self) -> None:
        """Refuse all sentences that wait, because the server ends."""
        for each in self.waiting:
            each.refuse(503, "the server is being stopped: try again")
