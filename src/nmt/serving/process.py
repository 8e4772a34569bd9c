"""The process of a model: a crash ends neither the server nor other models, and its work blocks nothing."""

import asyncio
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from nmt.compute.processes import end_with_parent
from nmt.config.folders import expanded
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.serving.messages import Answer, Batch, Failure, LostError, ModelFacts, log

if TYPE_CHECKING:
    from nmt.decoding.load import LoadedModel

MAX_REASON = 500
"""The largest number of characters of an unexpected error that is shown; torch adds pages to some."""
MAX_PAUSE_SECONDS = 30
"""The longest pause between two attempts to start a process."""
_loaded: "list[LoadedModel]" = []
"""The model, in its own process."""


class ModelProcess:
    """A model in a process of its own, which is replaced if it ends or hangs."""

    def __init__(self, name: str, config: Config, folder: str = "") -> None:
        """Name a model: that in a folder, or without one that which the settings choose."""
        # A link is followed once, so that a process that is started later has the same model.
        self.name, self.config, self.folder = name, config, str(expanded(folder).resolve()) if folder else ""
        self._ready = asyncio.Event()
        self._facts: ModelFacts | None = None
        self._replacement: asyncio.Task[None] | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model, once it has been loaded."""
        assert self._facts is not None
        return self._facts

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return self._ready.is_set()

    async def start(self) -> None:
        """Load the model; raise the UserError of a model that cannot be loaded, or has other weights than before."""
        # spawned, because a copy of this process would have its threads' locks, and no GPU
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_prepare)
        resource_tracker.ensure_running()  # its start would unblock the signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C must not interrupt its imports
        others = set(active_children())
        try:
            loading = self._pool.submit(_load, self.name, self.config, self.folder)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        (self._process,) = set(active_children()) - others
        try:
            facts = await asyncio.wrap_future(loading)
        except BrokenProcessPool as error:
            raise UserError(f"the process of model {self.name} ended while it loaded the model") from error
        if self._facts and facts.weights != self._facts.weights:
            raise UserError(
                f"the weights of model {self.name} have changed: start the server again to serve the new ones"
            )
        self._facts = facts
        self._ready.set()

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        """Return the answers for a batch; if the process ends, or has no answer in time, replace it: a LostError."""
        await self._ready.wait()
        assert self._pool
        try:
            async with asyncio.timeout(self.config.serve.timeout):
                return await asyncio.wrap_future(self._pool.submit(_answer, batch))
        except (BrokenProcessPool, TimeoutError) as error:
            self._ready.clear()
            self._end()
            self._replacement = asyncio.get_running_loop().create_task(self._start_again())
            raise LostError from error

    def stop(self) -> None:
        """End the process."""
        if self._replacement:
            self._replacement.cancel()
        self._end()

    async def _start_again(self) -> None:
        pause = 0
        while not self.ready:
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE_SECONDS, 2 * pause + 1)
            log(f"starting model {self.name} again")
            try:
                await self.start()
            except (UserError, OSError) as error:  # OSError: the system has no memory for another process
                log(str(error))
                self._end()

    def _end(self) -> None:
        """End the process, also in the middle of a batch."""
        if self._pool and self._process:
            self._process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _prepare() -> None:
    """Let the server end this process: it finishes open requests first."""
    end_with_parent()  # also in the middle of a batch, so that a new server has the memory and the cores
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _load(name: str, config: Config, folder: str) -> ModelFacts:
    """Load the model of this process; any error becomes a UserError, because others might not be picklable."""
    try:
        from nmt.serving.worker import facts_of, load_model  # noqa: PLC0415 - only this process needs torch

        _loaded[:] = [load_model(config, folder)]
        return facts_of(_loaded[0])
    except UserError as error:
        raise UserError(str(error)) from None
    except BaseException as error:  # of any kind: with too little memory, imports fail in many ways
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"model {name} cannot be loaded: {reason[:MAX_REASON]}") from None


def _answer(batch: Batch) -> list[Answer | Failure]:
    from nmt.serving.worker import answer  # noqa: PLC0415 - imported when the model was loaded

    return answer(_loaded[0], batch)
