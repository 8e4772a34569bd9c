"""An application of the server in this process, with a small model that runs in a thread."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

import nmt
from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.decoding.translation import Request
from nmt.serving.api import Api, Detector
from nmt.serving.app import application
from nmt.serving.messages import Answer, Task
from nmt.serving.process import ModelProcess
from nmt.serving.queue import Queue
from tests.unit.tiny_run import write_tiny_run

if TYPE_CHECKING:
    from nmt.decoding.load import LoadedModel

CONFIG = ServeConfig(max_bytes=20_000)


class ThreadModel(ModelProcess):
    """Runs a model in a thread instead of a process of its own; `broken` is what it raises instead."""

    def __init__(self, model: "LoadedModel", name: str = "tiny") -> None:
        from nmt.serving.worker import answer, facts_of

        super().__init__(name, Config())
        self.answer, self.model, self.facts = answer, model, facts_of(model)
        self.loaded.set()
        self.batches: list[Sequence[Request]] = []
        self.broken: Exception | None = None

    async def run(self, task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
        self.batches.append(requests)
        if self.broken:
            raise self.broken
        return await asyncio.to_thread(self.answer, self.model, task, requests)


@contextmanager
def served(
    *models: ThreadModel, config: ServeConfig = CONFIG, keys: Sequence[bytes] = (), detector: Detector | None = None
) -> Iterator[TestClient]:
    """Yield a client of a server with these models."""
    queues = [Queue(each) for each in models]
    with TestClient(application(Api(queues, detector), config, keys), "http://localhost") as client:
        working = [client.portal.start_task_soon(queue.work) for queue in queues]
        yield client
        for each in working:
            each.cancel()


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> "LoadedModel":
    return nmt.load(write_tiny_run(tmp_path_factory.mktemp("outputs") / "tiny"), device="cpu", precision="fp32")


@pytest.fixture
def running(model: "LoadedModel") -> ThreadModel:
    return ThreadModel(model)


@pytest.fixture
def client(running: ThreadModel) -> Iterator[TestClient]:
    with served(running) as found:
        yield found
