"""Listen, answer, and stop: uvicorn with time limits for slow clients and a clean end."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.serving.app import application
from nmt.serving.detection import load_detector
from nmt.serving.errors import log
from nmt.serving.keys import read_keys
from nmt.serving.metrics import Metrics
from nmt.serving.process import ModelProcesses
from nmt.serving.protocol import timed_protocol
from nmt.serving.requests import ModelSource
from nmt.serving.service import Model, Service

MAX_HEADER_BYTES = 16_384
"""The largest head of a request."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 1024
"""The most connections that wait to be accepted."""
THREAD_SECONDS = 0.0005
"""Seconds for which a thread, such as one that splits a long text, may keep Python's lock while the event loop waits
for it. With Python's own 5 ms, every answer of others would wait several times that long."""
MAX_CONNECTIONS = 1_000
"""Most open connections."""
DRAIN_SECONDS = 30
"""Most seconds to finish open requests after SIGTERM."""
KEEP_ALIVE_SECONDS = 15
"""Seconds for which a connection stays open after an answer."""


def serve(config: Config) -> None:
    """Load the models, and answer requests until SIGTERM or SIGINT; then finish the open ones."""
    asyncio.run(_serve_until_signal(config))


async def _serve_until_signal(config: Config) -> None:
    """Serve; a signal while models are being loaded ends the server, because no request has come yet."""
    loading, loop = asyncio.ensure_future(_serve(config)), asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, loading.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await loading


async def _serve(config: Config) -> None:
    sys.setswitchinterval(THREAD_SECONDS)
    for name in ("uvicorn", "python_multipart", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # messages may quote requests; the guard reports errors
    metrics, keys = Metrics(), read_keys(config.serve.key_file)
    listening = _bind(config.serve)
    folders = config.serve.named_folders or [(config.name, "")]
    runners = [ModelProcesses(ModelSource(name, config, folder), metrics) for name, folder in folders]
    try:
        await asyncio.gather(*(runner.start() for runner in runners))
        models = [Model(each.source.name, config.serve, each, metrics) for each in runners]
        app = application(Service(config.serve, models, metrics), keys, load_detector())
        _listen(listening, config.serve)
        workers = [asyncio.ensure_future(model.batcher.work()) for model in models]
        print(f"serving {', '.join(model.name for model in models)} at {_address(listening)}", flush=True)
        await _Server(_uvicorn_config(app, config.serve)).serve(sockets=[listening])
        for worker in workers:
            worker.cancel()
    finally:
        listening.close()
        for runner in runners:
            runner.stop()


def _bind(config: ServeConfig) -> socket.socket:
    """Take the port, so that another program's is noticed before models are loaded."""
    bound = socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET)
    with _explaining_ports(config):
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((config.host, config.port))
    return bound


def _listen(bound: socket.socket, config: ServeConfig) -> None:
    """Let clients connect, which a proxy takes as a sign that the server answers."""
    with _explaining_ports(config):
        bound.listen(BACKLOG)


@contextlib.contextmanager
def _explaining_ports(config: ServeConfig) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(
            f"cannot listen on serve.host={config.host}, serve.port={config.port}: {reason}; choose others"
        ) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _uvicorn_config(app: ASGIApp, config: ServeConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=timed_protocol(config.read_timeout, MAX_CONNECTIONS),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # it would contain the text of queries
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS + 1,  # uvicorn refuses the request that reaches it
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )


class _Server(uvicorn.Server):
    """A server for which SIGTERM is a request to finish, not an error."""

    should_exit: bool
    force_exit: bool

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Finish on SIGTERM and SIGINT. uvicorn would then end the process by the same signal."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._finish, number)
        yield

    def _finish(self, number: int) -> None:
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        elif not self.should_exit:
            log("finishing open requests")
        self.should_exit = True
