"""Which sentences are translated together, whose turn it is, and which requests are refused."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")
from starlette.exceptions import HTTPException

from nmt.config.tree import Config
from nmt.decoding.translation import Request
from nmt.serving import queue as queues
from nmt.serving.messages import Answer, ModelFacts, Task
from nmt.serving.process import ModelProcess
from nmt.serving.queue import Queue

PLAIN = Task()
CHARACTERS_PER_SECOND = 10_000


class Echo(ModelProcess):
    """Returns each sentence as its translation; each character takes the same time."""

    def __init__(self) -> None:
        super().__init__("echo", Config())
        self.facts = ModelFacts(0, "en", "de", "torch", attention=True, hypotheses=1)
        self.loaded.set()

    async def run(self, task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
        await asyncio.sleep(sum(len(each.text) for each in requests) / CHARACTERS_PER_SECOND)
        return [{"text": each.text} for each in requests]


def scenario(test: Callable[[Queue], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on an event loop, with an empty queue; no time passes between its calls."""

    def run() -> None:
        async def with_queue() -> None:
            await test(Queue(Echo()))

        asyncio.run(with_queue())

    run.__name__ = test.__name__
    return run


def add(queue: Queue, client: str, *texts: str, task: Task = PLAIN) -> list[asyncio.Future[Answer]]:
    return [each.answer for each in queue.add(client, task, [Request(text) for text in texts])]


def taken(queue: Queue) -> list[str]:
    return [each.request.text for each in queue.take()]


@scenario
async def test_sentences_of_like_length_and_equal_tasks_are_taken_together(queue: Queue) -> None:
    add(queue, "a", "one two", "x " * 200)
    add(queue, "b", "three four five")
    add(queue, "c", "six", task=Task(nbest=2))
    assert taken(queue) == ["one two", "three four five"]
    assert sorted([taken(queue), taken(queue)]) == [["six"], ["x " * 200]]
    assert taken(queue) == []


@scenario
async def test_a_batch_takes_no_longer_than_a_turn(queue: Queue) -> None:
    queue.cost_per_second = 10 * 120 / queues.TURN_SECONDS  # ten sentences of 100 characters
    add(queue, "a", *["y" * 100] * 50)
    add(queue, "b", "y" * 100)
    assert len(taken(queue)) == 10
    add(queue, "a", "y" * 100_000)
    while queue.waiting:
        assert taken(queue)  # also what costs more than a turn


@scenario
async def test_a_client_with_many_requests_gets_the_share_of_one(queue: Queue) -> None:
    served, working = Counter[str](), asyncio.ensure_future(queue.work())

    async def ask(client: str, count: int) -> None:
        while True:
            await queue.ask(client, PLAIN, [Request("x" * 50)] * count)
            served[client] += count

    clients = [*["hostile"] * 8, *["honest", "other"] * 2]
    asking = [asyncio.ensure_future(ask(each, 100 if each == "hostile" else 20)) for each in clients]
    while sum(served.values()) < 400:  # about as many as are translated in two seconds
        await asyncio.sleep(0.01)
    for task in (*asking, working):
        task.cancel()
    assert served["hostile"] <= 1.5 * min(served["honest"], served["other"]) + 100


@scenario
async def test_who_has_had_more_is_translated_alone_and_waits_for_one_that_was_just_answered(queue: Queue) -> None:
    add(queue, "honest", "y")
    add(queue, "hostile", "x" * 500)
    assert {*taken(queue), *taken(queue)} == {"x" * 500, "y"}
    queue.clients["hostile"].served += 10
    add(queue, "hostile", "z")
    add(queue, "honest", "y")
    assert taken(queue) == ["y"]
    queue.clients["honest"].answered = time.monotonic()
    assert taken(queue) == []
    add(queue, "honest", "a" * 300)
    assert taken(queue) == ["a" * 300]
    queue.clients["honest"].answered = -math.inf
    assert taken(queue) == ["z"]


@scenario
async def test_most_clients_do_not_wait_for_one_that_asks_little(queue: Queue) -> None:
    for name in ("one", "two", "three"):
        add(queue, name, "x")
        queue.clients[name].served += 10
    add(queue, "little", "y")[0].cancel()
    queue.clients["little"].answered = time.monotonic()
    assert taken(queue) == ["x"] * 3


@scenario
async def test_requests_of_a_client_take_turns(queue: Queue) -> None:
    queue.cost_per_second = 4 * 30 / queues.LONE_TURN_SECONDS  # four sentences
    for each in queue.add("proxy", PLAIN, [Request(f"long one {number}") for number in range(9)]):
        each.part.served += 1  # it has had a turn
    add(queue, "proxy", "short")
    assert "short" in taken(queue)


@scenario
async def test_without_room_the_newest_request_of_the_largest_client_is_refused(queue: Queue) -> None:
    first, second = (add(queue, "hostile", *["h"] * 1_000) for _ in range(2))
    (answer,) = add(queue, "honest", "a")
    assert not any(each.done() for each in (*first, answer))
    refusals = [each.exception() for each in second]
    assert all(isinstance(each, HTTPException) and each.status_code == 429 for each in refusals)
    assert len(queue.waiting) == 1_001


@scenario
async def test_sentences_of_clients_that_are_gone_are_not_taken(queue: Queue) -> None:
    asking = asyncio.ensure_future(queue.ask("a", PLAIN, [Request("gone")]))
    await asyncio.sleep(0)
    add(queue, "b", "there")
    asking.cancel()
    await asyncio.wait([asking])
    assert taken(queue) == ["there"]
