"""The queue of a model: what is translated together, in which order, and when requests are refused."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.config.commands import ServeConfig
from nmt.decoding.request import Request
from nmt.serving import batcher as batching
from nmt.serving import cost
from nmt.serving.batcher import Batcher
from nmt.serving.errors import LostError, RequestError
from nmt.serving.metrics import Metrics
from nmt.serving.requests import Answer, Batch, Failure, Task

PLAIN = Task()
HYPOTHESES = 4


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WAIT_SECONDS", 0)


async def echo(batch: Batch) -> list[Answer | Failure]:
    return [{"text": request.text} for request in batch.requests]


def batcher(
    run: Callable[[Batch], Awaitable[list[Answer | Failure]]] = echo, parallel: int = 1, **settings: int
) -> Batcher:
    limits = type("Limits", (ServeConfig,), {"queue": 100, "batch": 8, **settings})
    return Batcher("test", limits(), run, Metrics(), HYPOTHESES, parallel)


def work_of(task: Task, requests: Sequence[Request]) -> int:
    return cost.work_of(task, requests, HYPOTHESES)


def requests(*texts: str) -> list[Request]:
    return [Request(text) for text in texts]


def taken(queue: Batcher) -> list[str]:
    return [each.request.text for each in queue.take()]


async def drain(queue: Batcher) -> list[list[str]]:
    batches = []
    while queue.waiting:
        if batch := taken(queue):
            batches.append(batch)
    return batches


def test_sentences_of_different_clients_are_taken_together_up_to_the_limit() -> None:
    async def scenario() -> None:
        queue = batcher(batch=3)
        for number in range(5):
            queue.add(PLAIN, requests(f"a sentence {number}"))
        assert await drain(queue) == [
            ["a sentence 0", "a sentence 1", "a sentence 2"], ["a sentence 3", "a sentence 4"]
        ]  # fmt: skip

    asyncio.run(scenario())


def test_short_sentences_do_not_wait_for_long_ones_and_long_ones_take_their_turn() -> None:
    async def scenario() -> None:
        queue = batcher(batch=4)
        queue.add(PLAIN, requests("x " * 150))
        for _ in range(3):
            queue.add(PLAIN, requests("y " * 15))
        assert [[text[0] for text in batch] for batch in await drain(queue)] == [["x"], ["y"] * 3]
        queue.add(PLAIN, requests("y " * 15))
        queue.add(PLAIN, requests("x " * 150))
        found: list[str] = []
        while "x " * 150 not in found:  # short sentences keep coming
            queue.add(PLAIN, requests(*["y " * 15] * 4))
            found += taken(queue)
        assert len(found) <= 10

    asyncio.run(scenario())


def test_only_equal_tasks_are_translated_together() -> None:
    async def scenario() -> None:
        queue = batcher()
        queue.add(PLAIN, requests("a"))
        queue.add(Task(nbest=2), requests("b"))
        queue.add(PLAIN, requests("c"))
        assert await drain(queue) == [["a", "c"], ["b"]]

    asyncio.run(scenario())


def test_requests_without_room_are_refused_whole_and_told_when_to_return() -> None:
    async def scenario() -> None:
        queue = batcher(queue=3)
        first = queue.add(PLAIN, requests("a", "b"))
        with pytest.raises(RequestError) as refused:
            queue.add(PLAIN, requests("c", "d"))
        assert refused.value.status == 429
        assert int(refused.value.headers["Retry-After"]) >= 1
        assert len(queue.waiting) == 2
        first[0].cancel()  # its client is gone
        queue.add(PLAIN, requests("c", "d"))
        assert sorted(taken(queue)) == ["b", "c", "d"]

    asyncio.run(scenario())


def test_answers_and_errors_reach_those_who_wait() -> None:
    async def run(batch: Batch) -> list[Answer | Failure]:
        if batch.task.nbest == 2:
            raise RequestError(503, "gone")
        return await echo(batch)

    async def scenario() -> None:
        queue = batcher(run)
        work = asyncio.ensure_future(queue.work())
        good, bad = queue.add(PLAIN, requests("a", "b")), queue.add(Task(nbest=2), requests("c"))
        assert [each["text"] for each in await asyncio.gather(*good)] == ["a", "b"]
        with pytest.raises(RequestError, match="gone"):
            await bad[0]
        assert (await queue.add(PLAIN, requests("again"))[0])["text"] == "again"
        work.cancel()

    asyncio.run(scenario())


def test_batches_that_run_at_the_same_time_share_the_sentences() -> None:
    sizes: list[int] = []
    both_run = asyncio.Event()

    async def run(batch: Batch) -> list[Answer | Failure]:
        sizes.append(len(batch.requests))
        if len(sizes) == 2:
            both_run.set()
        await asyncio.wait_for(both_run.wait(), 60)
        return await echo(batch)

    async def scenario() -> None:
        queue = batcher(run, parallel=2)
        answers = queue.add(PLAIN, requests(*map(str, range(10))))
        work = asyncio.ensure_future(queue.work())
        assert [each["text"] for each in await asyncio.gather(*answers)] == [*map(str, range(10))]
        work.cancel()

    asyncio.run(scenario())
    assert sizes == [5, 5]


def test_a_single_sentence_does_not_wait_for_a_second_batch() -> None:
    async def scenario() -> None:
        queue = batcher(parallel=4)
        work = asyncio.ensure_future(queue.work())
        (answer,) = queue.add(PLAIN, requests("alone"))
        assert (await asyncio.wait_for(answer, 60))["text"] == "alone"
        work.cancel()

    asyncio.run(scenario())


def test_a_sentence_that_ends_its_process_fails_alone_and_the_others_are_translated() -> None:
    batches: list[list[str]] = []

    async def run(batch: Batch) -> list[Answer | Failure]:
        batches.append([request.text for request in batch.requests])
        if "poison" in batches[-1]:
            raise LostError
        return await echo(batch)

    async def scenario() -> None:
        queue = batcher(run)
        good, poison = queue.add(PLAIN, requests("a", "b", "c")), queue.add(PLAIN, requests("poison"))
        work = asyncio.ensure_future(queue.work())
        assert [each["text"] for each in await asyncio.gather(*good)] == ["a", "b", "c"]
        with pytest.raises(RequestError) as failed:
            await poison[0]
        assert failed.value.status == 500  # a proxy sends what is answered with 503 to the next server
        work.cancel()

    asyncio.run(scenario())
    assert [sorted(batch) for batch in batches[:1]] == [["a", "b", "c", "poison"]]
    assert sorted(batches[1:]) == [["a"], ["b"], ["c"], ["poison"]]


def test_a_sentence_whose_process_ends_by_accident_is_translated_again() -> None:
    lost = [True, False]

    async def run(batch: Batch) -> list[Answer | Failure]:
        if lost.pop(0):
            raise LostError
        return await echo(batch)

    async def scenario() -> None:
        queue = batcher(run)
        (answer,) = queue.add(PLAIN, requests("a"))
        work = asyncio.ensure_future(queue.work())
        assert (await answer)["text"] == "a"
        work.cancel()

    asyncio.run(scenario())


def test_sentences_that_cost_much_are_taken_a_few_at_a_time() -> None:
    async def scenario() -> None:
        queue = batcher()
        queue.add(Task(beam=16), requests(*["x " * 300] * 8))
        sizes = [len(batch) for batch in await drain(queue)]
        assert sum(sizes) == 8
        assert max(sizes) == batching.MAX_BATCH_COST // work_of(Task(beam=16), requests("x " * 300))

    asyncio.run(scenario())
