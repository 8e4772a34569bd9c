"""The process of a model: a crash ends neither the server nor other models, and its work blocks nothing."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children
from typing import TYPE_CHECKING

from prometheus_client import Counter
from starlette.exceptions import HTTPException

from nmt.compute.processes import SPAWN, end_with_parent
from nmt.config.folders import expanded
from nmt.config.tree import Config
from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.serving.messages import Answer, ModelFacts, Task, log

if TYPE_CHECKING:
    from nmt.decoding.load import LoadedModel

RESTARTS = Counter("nmt_worker_restarts", "Processes that were replaced", ["model"])
MAX_REASON = 500
"""The largest number of characters of an unexpected error that is shown; torch adds pages to some."""
PAUSE_SECONDS = 5
"""Time between two attempts to start a process again."""
_loaded: "list[LoadedModel]" = []
"""The model, in its own process."""


class ModelProcess:
    """A model in a process of its own, which is replaced if it ends or hangs."""

    facts: ModelFacts
    """What is known of the model, once it has been loaded."""

    def __init__(self, name: str, config: Config, folder: str = "") -> None:
        """Name a model: that in a folder, or without one that which the settings choose."""
        # A link is followed once, so that a process that is started later has the same model.
        self.name, self.config, self.folder = name, config, str(expanded(folder).resolve()) if folder else ""
        self.loaded = asyncio.Event()

    async def start(self) -> None:
        """Load the model, or raise the UserError of one that cannot be loaded."""
        self._pool = ProcessPoolExecutor(1, SPAWN, initializer=end_with_parent)
        try:
            self.facts = await asyncio.wrap_future(self._pool.submit(_load, self.config, self.folder))
        except BrokenProcessPool as error:
            raise UserError(f"the process of model {self.name} ended while it loaded the model") from error
        except UserError as error:
            self._pool.shutdown(wait=False)
            raise UserError(f"model {self.name}: {error}") from error
        self.loaded.set()

    async def run(self, task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
        """Return an answer per sentence; if the process ends, or has no answer in time, replace it."""
        await self.loaded.wait()
        try:
            async with asyncio.timeout(self.config.serve.timeout):
                return await asyncio.wrap_future(self._pool.submit(_answer, task, requests))
        except (BrokenProcessPool, TimeoutError):
            RESTARTS.labels(self.name).inc()
            self.loaded.clear()
            for each in active_children():
                if each.pid == self.facts.pid:
                    each.kill()  # also in the middle of a batch
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._restart = asyncio.ensure_future(self._start_again())
            # not 503, after which a proxy would send what ended this process to the next server
            return [HTTPException(500, "the model failed, and is being started again")] * len(requests)

    async def _start_again(self) -> None:
        while not self.loaded.is_set():
            log(f"starting model {self.name} again")
            try:
                await self.start()
            except (UserError, OSError) as error:  # OSError: the system has no memory for another process
                log(str(error))
                await asyncio.sleep(PAUSE_SECONDS)


def _load(config: Config, folder: str) -> ModelFacts:
    """Load the model of this process; any error becomes a UserError, because others might not be picklable."""
    try:
        from nmt.serving.worker import facts_of, load_model  # noqa: PLC0415 - only this process needs torch

        _loaded[:] = [load_model(config, folder)]
        return facts_of(_loaded[0])
    except BaseException as error:  # of any kind: with too little memory, imports fail in many ways
        reason = str(error) if isinstance(error, UserError) else " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(reason[:MAX_REASON]) from None


def _answer(task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
    from nmt.serving.worker import answer  # noqa: PLC0415 - imported when the model was loaded

    return answer(_loaded[0], task, requests)
