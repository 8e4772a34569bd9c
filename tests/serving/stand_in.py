"""A model for the tests of the page, which answers word by word, and can be slow, busy or broken.

It is served by the application of the real server.
"""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.exceptions import HTTPException

from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.decoding.translation import Request
from nmt.serving.api import Api
from nmt.serving.app import application
from nmt.serving.messages import Answer, ModelFacts, Task
from nmt.serving.process import ModelProcess
from nmt.serving.queue import Queue
from nmt.serving.server import HEADERS

WORDS = {
    "the": "der", "a": "ein", "little": "kleine", "dog": "Hund", "cat": "Kater", "sees": "sieht", "house": "Haus",
    "man": "Mann", "walks": "geht", "his": "seinen", "in": "im", "park": "Park", "is": "ist", "old": "alte",
}  # fmt: skip
CHOICES = ("kleine", "winzige", "junge")
PROBABILITIES = (0.95, 0.55, 0.21)


class StandIn(ModelProcess):
    """Records what it is asked; `delays` holds seconds by text, `failures` what the next translations answer."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Config())
        is_torch = name != "int8"
        self.facts = ModelFacts(0, "en", "de", "torch" if is_torch else "ctranslate2", is_torch, hypotheses=1)
        self.loaded.set()
        self.delays: dict[str, float] = {}
        self.failures: list[HTTPException] = []
        self.asked: list[tuple[Task, Request]] = []

    def translated(self) -> list[Request]:
        """Return the sentences that it was asked to translate."""
        return [request for task, request in self.asked if not task.choices]

    async def run(self, task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
        """See `ModelProcess.run`."""
        self.asked += [(task, each) for each in requests]
        await asyncio.sleep(max(self.delays.get(each.text, 0) for each in requests))
        if self.failures:
            return [self.failures.pop(0)] * len(requests)
        if task.choices:
            shares = [{"text": word, "probability": 0.6 / 2**place} for place, word in enumerate(CHOICES)]
            return [{"choices": shares}]
        return [{"candidates": self._candidates(each)} for each in requests]

    def _candidates(self, request: Request) -> list[Answer]:
        words, forced = request.text.split(), request.beginning.split()
        best = [*forced, *map(translated, words[len(forced) :])]
        others = [[*best[:-1], "anders."], [*best[:-1], "so."] if forced else ["Doch", *best]]
        return [self._candidate(each, words) for each in (best, *others)]

    def _candidate(self, words: list[str], source: list[str]) -> Answer:
        rows = [[0.8 if place == index else 0.2 / len(source) for index in range(len(source))] for place in range(50)]
        attention = {"attention": rows[: len(words)]} if self.facts.attention else {}
        listed = [{"text": word, "probability": PROBABILITIES[len(word) % 3]} for word in words]
        return {"text": " ".join(words), "score": 0.0, "source_words": source, "words": listed, **attention}


def translated(word: str) -> str:
    plain = word.strip(".!?").lower()
    return word.lower().replace(plain, WORDS.get(plain, f"{plain}en"))


@contextmanager
def serving(*models: ModelProcess, keys: Sequence[bytes] = ()) -> Iterator[str]:
    """Run a server with these models in a thread, and yield its address."""
    queues = [Queue(each) for each in models]
    app = application(Api(queues), ServeConfig(), keys)
    headers = list(HEADERS.items())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off", headers=headers))

    async def run() -> None:
        working = [asyncio.ensure_future(each.work()) for each in queues]
        await server.serve()
        for each in working:
            each.cancel()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
