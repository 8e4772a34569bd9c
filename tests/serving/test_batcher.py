"""The batches of a model: what is translated together, whose turn it is, and which requests are refused."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.decoding.translation import Request
from nmt.serving import batcher as batching
from nmt.serving.batcher import Batcher, cost_of
from nmt.serving.messages import Answer, Batch, Failure, LostError, RequestError, Task
from nmt.serving.metrics import Metrics

PLAIN = Task()


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what waits at once: time does not pass between the calls of these tests."""
    monkeypatch.setattr(batching, "QUIET_SECONDS", 0.0)


async def echo(batch: Batch) -> list[Answer | Failure]:
    return [{"text": request.text} for request in batch.requests]


def batcher(run: Callable[[Batch], Awaitable[list[Answer | Failure]]] = echo) -> Batcher:
    return Batcher("test", run, 4, Metrics())


def requests(*texts: str) -> list[Request]:
    return [Request(text) for text in texts]


def taken(queue: Batcher) -> list[str]:
    return [each.request.text for each in queue.take()]


def scenario(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on an event loop."""

    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type] # it is a coroutine

    run.__name__ = test.__name__
    return run


@scenario
async def test_sentences_of_like_length_and_equal_tasks_are_taken_together() -> None:
    queue = batcher()
    queue.add("a", PLAIN, requests("one two", "x " * 200))
    queue.add("b", PLAIN, requests("three four five"))
    queue.add("c", Task(nbest=2), requests("six"))
    assert taken(queue) == ["one two", "three four five"]
    assert sorted([taken(queue), taken(queue)]) == [["six"], ["x " * 200]]
    assert taken(queue) == []


@scenario
async def test_a_batch_costs_no_more_than_the_time_of_a_turn() -> None:
    queue = batcher()
    queue.cost_per_second = 10 * cost_of(PLAIN, Request("y" * 100), 4) / batching.TURN_SECONDS
    queue.add("a", PLAIN, requests(*["y" * 100] * 50))
    queue.add("b", PLAIN, requests("y" * 100))
    assert len(taken(queue)) == 10
    queue.add("a", PLAIN, requests("y" * 100_000))
    while queue.waiting:
        assert taken(queue)  # also what costs more than a turn


@scenario
async def test_a_client_with_many_requests_gets_the_share_of_one() -> None:
    """Four connections that send 500 sentences again and again, and ten clients that send one."""
    queue, served = batcher(), Counter[str]()
    queue.cost_per_second = 8 * cost_of(PLAIN, Request("h" * 50), 4) / batching.TURN_SECONDS
    for _ in range(4):
        queue.add("hostile", PLAIN, requests(*["h" * 50] * 450))
    honest = [f"{number}" * 50 for number in range(10)]
    for text in honest:
        queue.add(text, PLAIN, requests(text))
    for _ in range(100):
        found = taken(queue)
        served.update(found)
        for text in found:
            if text in honest:
                queue.add(text, PLAIN, requests(text))
            elif len(queue.waiting) < 1_500:
                queue.add("hostile", PLAIN, requests(*["h" * 50] * 450))
    shares = [served[text] for text in honest]
    assert max(shares) - min(shares) <= 8
    assert served["h" * 50] <= 2 * min(shares)


def test_a_client_that_has_had_more_waits_for_one_that_was_just_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        queue = batcher()
        queue.add("hostile", PLAIN, requests("x" * 500))
        queue.add("honest", PLAIN, requests("y"))
        assert {*taken(queue), *taken(queue)} == {"x" * 500, "y"}
        queue.clients["hostile"].served += 10 * queue.cost_per_second  # it took ten seconds
        queue.add("hostile", PLAIN, requests("z"))
        monkeypatch.setattr(batching, "QUIET_SECONDS", 60.0)
        assert taken(queue) == []
        queue.add("honest", PLAIN, requests("a" * 300))
        assert taken(queue) == ["a" * 300]
        monkeypatch.setattr(batching, "QUIET_SECONDS", 0.0)
        assert taken(queue) == ["z"]

    asyncio.run(test())


@scenario
async def test_requests_of_a_client_take_turns_and_a_new_client_comes_first() -> None:
    queue = batcher()
    queue.cost_per_second = 4 * cost_of(PLAIN, Request("long one 0"), 4) / batching.TURN_SECONDS
    queue.add("proxy", PLAIN, requests(*(f"long one {number}" for number in range(9))))
    queue.add("other", PLAIN, requests("far away"))
    taken(queue)
    queue.add("proxy", PLAIN, requests("short"))
    queue.add("third", PLAIN, requests("new one"))
    assert {"short", "new one"} <= set(taken(queue))
    assert "long one 8" in {text for _ in range(9) for text in taken(queue)}


@scenario
async def test_without_room_the_newest_request_of_the_largest_client_is_refused() -> None:
    queue = batcher()
    first, second = (queue.add("hostile", PLAIN, requests(*["h"] * 1_000)) for _ in range(2))
    (answer,) = queue.add("honest", PLAIN, requests("a"))
    assert not any(each.done() for each in (*first, answer))
    with pytest.raises(RequestError) as refused:
        await second[0]
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    assert len(queue.waiting) == 1_001


@scenario
async def test_sentences_of_clients_that_are_gone_are_not_taken() -> None:
    queue = batcher()
    gone, _ = queue.add("a", PLAIN, requests("gone", "there"))
    gone.cancel()
    assert taken(queue) == ["there"]


@scenario
async def test_the_sentence_that_ends_its_process_fails_alone() -> None:
    asked: list[list[str]] = []

    async def run(batch: Batch) -> list[Answer | Failure]:
        asked.append([each.text for each in batch.requests])
        if "poison" in asked[-1]:
            raise LostError
        return await echo(batch)

    queue = batcher(run)
    working = asyncio.ensure_future(queue.work())
    found = await asyncio.gather(*queue.add("a", PLAIN, requests("one", "poison", "two")), return_exceptions=True)
    assert [found[0], found[2]] == [{"text": "one"}, {"text": "two"}]
    assert isinstance(found[1], RequestError)
    assert found[1].status == 500
    assert asked[0] == ["one", "poison", "two"]
    assert sorted(asked[1:]) == [["one"], ["poison"], ["two"]]
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


def test_what_a_translation_must_contain_and_long_words_cost_more() -> None:
    plain = cost_of(PLAIN, Request("word " * 60), 4)
    assert cost_of(PLAIN, Request("x" * 300), 4) > 3 * plain
    assert cost_of(PLAIN, Request("word " * 60, "y" * 300), 4) > 7 * plain
    assert cost_of(Task(nbest=8), Request("word " * 60), 4) == 2 * plain
