"""Start the processes of a model, call them, and replace those that end."""

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from nmt.compute.cores import computing_threads
from nmt.compute.processes import end_with_parent
from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.serving.errors import LostError, log, unavailable
from nmt.serving.metrics import Metrics
from nmt.serving.requests import Answer, Batch, Failure, ModelFacts, ModelSource

MAX_REASON = 500
"""The largest number of characters of an unexpected error that is shown; torch adds pages to some."""
MAX_PAUSE_SECONDS = 30
"""The longest pause between two attempts to start a process."""
MAX_PROCESSES = 4
"""The most processes of a model unless the settings say otherwise: each needs memory of its own."""
GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What Linux has if there is a GPU of NVIDIA or AMD, or Windows' one in WSL."""
POLL_SECONDS = 0.02
"""Seconds between two looks for a process that is free, while others are being replaced."""


class ModelProcess:
    """A model in a process of its own: a crash ends neither the server nor other models, and its work blocks nothing.

    A thread waits for the answers, because reading from a pipe blocks.
    """

    def __init__(self, source: ModelSource, metrics: Metrics) -> None:
        self.source = source
        self.ready = False
        """Whether the model is loaded."""
        self.busy = False
        """Whether it runs a batch."""
        self._facts: ModelFacts | None = None
        self._restarts = metrics.restarts.labels(source.name)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"model {source.name}")
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._replacement: asyncio.Task[None] | None = None

    @property
    def facts(self) -> ModelFacts:
        """What clients may know of the model, once it has been loaded."""
        assert self._facts is not None
        return self._facts

    async def start(self) -> None:
        """Load the model; raise the UserError of a model that cannot be loaded, or has other weights than before."""
        context = get_context("spawn")  # a copy of this process would have its threads' locks, and no GPU
        self._connection, other = context.Pipe()
        # not a daemon, which may not fork, as the search does for few sentences; it ends when the pipe is closed
        process = context.Process(target=_run, args=(other, self.source), daemon=False)
        _start_without_interrupts(process)
        self._process = process
        other.close()
        try:
            reply = await self._exchange(None)
        except LostError as error:
            raise UserError(f"the process of model {self.source.name} ended while it loaded the model") from error
        if isinstance(reply, Failure):
            raise UserError(reply.message)
        assert isinstance(reply, ModelFacts)
        if self._facts and reply.weights != self._facts.weights:
            raise _changed(self.source)
        self._facts, self.ready = reply, True
        asyncio.get_running_loop().add_reader(process.sentinel, self._replace)

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        """Return the answers for a batch; if the process ends, or has no answer in time, replace it: a LostError."""
        self.busy = True
        try:
            async with asyncio.timeout(self.source.config.serve.timeout):
                reply = await self._exchange(batch)
        except (LostError, TimeoutError) as error:
            self._replace()
            raise LostError from error
        finally:
            self.busy = False
        assert isinstance(reply, list)
        return reply

    def stop(self) -> None:
        """End the process."""
        if self._replacement:
            self._replacement.cancel()
        self._end()
        self._thread.shutdown(wait=False)

    async def _exchange(self, batch: Batch | None) -> object:
        """Send a batch, if there is one, and return what the process sends."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _exchange, self._connection, batch)

    def _replace(self) -> None:
        """End the process, and start another one in the background."""
        if not self.ready:  # it is being replaced already
            return
        self._end()
        self._replacement = asyncio.get_running_loop().create_task(self._start_again())

    async def _start_again(self) -> None:
        pause = 0
        while not self.ready:
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE_SECONDS, 2 * pause + 1)
            self._restarts.inc()
            log(f"starting model {self.source.name} again")
            try:
                await self.start()
            except (UserError, OSError) as error:  # OSError: the system has no memory for another process
                log(str(error))
                self._end()

    def _end(self) -> None:
        self.ready = False
        if self._process:
            asyncio.get_running_loop().remove_reader(self._process.sentinel)
            self._process.kill()
            self._process.join()


def _start_without_interrupts(process: BaseProcess) -> None:
    """Start a process that Ctrl-C cannot interrupt while it imports; this process ends it."""
    resource_tracker.ensure_running()  # its start would unblock the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class ModelProcesses:
    """The processes of a model. On a CPU there are several, because a single one cannot keep all cores busy."""

    def __init__(self, source: ModelSource, metrics: Metrics) -> None:
        runtime = source.config.runtime
        cores = runtime.threads or computing_threads()
        self._wanted = source.config.serve.processes or min(cores, MAX_PROCESSES)
        share = replace(runtime, threads=max(1, cores // self._wanted))
        # A link is followed once, so that all processes have the same model, also those that start later.
        folder = str(expanded(source.folder).resolve()) if source.folder else ""
        self.source = replace(source, config=replace(source.config, runtime=share), folder=folder)
        self.metrics = metrics
        self.processes = [ModelProcess(self.source, metrics)]

    @property
    def parallel(self) -> int:
        """How many batches run at the same time."""
        return len(self.processes)

    @property
    def ready(self) -> bool:
        """Whether a process takes batches."""
        return any(process.ready for process in self.processes)

    @property
    def facts(self) -> ModelFacts:
        """What clients may know of the model, once it has been loaded."""
        return self.processes[0].facts

    async def start(self) -> None:
        """Load the model; raise the UserError of a model that cannot be loaded.

        All processes start at the same time, unless the first one has to find out whether there is a GPU, which gets
        only one.
        """
        if not self._expects_several():
            await self.processes[0].start()
            if self.facts.device != "cpu":
                return
        others = [ModelProcess(self.source, self.metrics) for _ in range(self._wanted - 1)]
        self.processes += others
        await asyncio.gather(*(process.start() for process in self.processes if not process.ready))
        if any(process.facts.weights != self.facts.weights for process in self.processes):
            raise _changed(self.source)

    def _expects_several(self) -> bool:
        """Return whether it is known without PyTorch that the model does not run on a GPU, or how many there are."""
        if self.source.config.serve.processes or self.source.config.runtime.device == "cpu":
            return True
        return sys.platform == "linux" and not any(map(os.path.exists, GPU_DEVICES))

    async def run(self, batch: Batch) -> list[Answer | Failure]:
        """Return the answers for a batch; while processes are being replaced, the others take all batches.

        A batch waits for the first process that is ready, but not longer than its clients.
        """
        try:
            async with asyncio.timeout(self.source.config.serve.timeout):
                while not (free := [each for each in self.processes if each.ready and not each.busy]):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise unavailable() from error
        return await free[0].run(batch)

    def stop(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.stop()


def _changed(source: ModelSource) -> UserError:
    """Return the error for a model whose processes would not answer alike."""
    return UserError(f"the weights of model {source.name} have changed: start the server again to serve the new ones")


def _run(connection: Connection, source: ModelSource) -> None:
    """Be the process of a model."""
    end_with_parent()  # also in the middle of a batch, so that a new server has the memory and the cores
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server finishes open requests first, and then ends this process
    try:
        from nmt.serving.worker import answer_batches, load_source  # noqa: PLC0415 - only this process needs torch

        model = load_source(source)
    except BaseException as error:  # of any kind: with too little memory, imports fail in many ways
        with suppress(Exception):  # there may be too little memory to say why, too
            connection.send(Failure(_reason(source, error)))
    else:
        answer_batches(connection, model)


def _reason(source: ModelSource, error: BaseException) -> str:
    """Return in one line why a model cannot be loaded."""
    if isinstance(error, UserError):
        return str(error)
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"model {source.name} cannot be loaded: {reason[:MAX_REASON]}"


def _exchange(connection: Connection | None, batch: Batch | None) -> object:
    assert connection is not None
    try:
        if batch is not None:
            connection.send(batch)
        return connection.recv()
    except (EOFError, OSError) as error:
        connection.close()
        raise LostError from error
