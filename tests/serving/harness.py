"""Run the application of the server in this process, with a small model, and send it requests."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")
from nmt.config.commands import ServeConfig
from nmt.decoding.load import LoadedModel
from nmt.serving.app import Server
from nmt.serving.libretranslate import Detector
from nmt.serving.messages import Answer, Batch, Failure, ModelFacts
from nmt.serving.metrics import Metrics
from nmt.serving.service import Model
from nmt.serving.worker import answer, facts_of

T = TypeVar("T")
CONFIG = ServeConfig(max_bytes=20_000, timeout=60, hosts=["test"])


class ThreadRunner:
    """Runs a model in a thread instead of a process of its own; `broken` is what it raises instead."""

    def __init__(self, model: LoadedModel, name: str = "tiny") -> None:
        self.model, self.name = model, name
        self.facts: ModelFacts = facts_of(model)
        self.ready = True
        self.batches: list[Batch] = []
        self.broken: Exception | None = None
        self.held: asyncio.Event | None = None
        """If it is there, batches wait until it is set."""

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        self.batches.append(batch)
        if self.held:
            await self.held.wait()
        if self.broken:
            raise self.broken
        return await asyncio.to_thread(answer, self.model, batch)


class Client:
    """Sends requests to an application that runs in a thread."""

    def __init__(
        self,
        runners: dict[str, ThreadRunner],
        config: ServeConfig,
        keys: Sequence[bytes] = (),
        detector: Detector | None = None,
    ) -> None:
        self.runners = runners
        self.metrics = Metrics()
        self.models = [Model(runner, self.metrics) for runner in runners.values()]
        self.app = Server(self.models, config, self.metrics, keys, detector).application()
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        for model in self.models:
            asyncio.run_coroutine_threadsafe(model.batcher.work(), self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def stop(self) -> None:
        """End all tasks before the loop: the garbage collector logs pending ones, in the middle of another test."""

        async def cancel_all() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.run(self._request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, **options)


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as a condition holds; the limit on `Client.run` ends a wait in vain."""
    while not condition():
        await asyncio.sleep(0.001)


@contextmanager
def running(client: Client) -> Iterator[Client]:
    try:
        yield client
    finally:
        client.stop()
