"""Listen, answer, and stop: uvicorn with time limits for slow clients and a clean end."""

import asyncio
import contextlib
import json
import logging
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.serving.app import Server
from nmt.serving.fields import read_keys
from nmt.serving.libretranslate import load_detector
from nmt.serving.messages import RETRY, Failure, log
from nmt.serving.metrics import Metrics
from nmt.serving.process import ModelProcess
from nmt.serving.service import Model

MAX_HEADER_BYTES = 16_384
"""The largest head of a request."""
MAX_CONNECTIONS = 1_000
SIGNALS = (signal.SIGTERM, signal.SIGINT)
READ_SECONDS = 10
"""Most seconds for a client to send a request, from its first byte, and to read an answer."""
READ_BYTES = 4_096
"""The most bytes that are read from a connection before others have their turn: h11 takes 25 microseconds for a chunk,
which may be a single byte."""
KEEP_ALIVE_SECONDS = 15
"""Seconds for which a connection stays open without a request."""
DRAIN_SECONDS = 30
"""Most seconds to finish open requests after SIGTERM."""
THREAD_SECONDS = 0.0005
"""Seconds for which a thread, such as one that splits a long text, may keep Python's lock while the event loop waits
for it. With Python's own 5 ms, every answer of others would wait several times that long."""


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
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(
            logging.CRITICAL
        )  # messages may quote requests; the application reports errors
    metrics, keys = Metrics(), read_keys(config.serve.key_file)
    named = config.serve.named_folders or [(config.name, "")]
    processes = [ModelProcess(name, config, folder) for name, folder in named]
    listening = _bind(config.serve)
    try:
        await asyncio.gather(*(each.start() for each in processes))
        models = [Model(each, metrics) for each in processes]
        server = Server(models, config.serve, metrics, keys, load_detector())
        with _explaining_ports(config.serve):
            listening.listen(MAX_CONNECTIONS)  # only now: a proxy takes it as a sign that the server answers
        workers = [asyncio.ensure_future(model.batcher.work()) for model in models]
        print(f"serving {', '.join(model.name for model in models)} at {_address(listening)}", flush=True)
        await _Uvicorn(server).serve(sockets=[listening])
        for worker in workers:
            worker.cancel()
    finally:
        listening.close()
        for each in processes:
            each.stop()


def _bind(config: ServeConfig) -> socket.socket:
    """Take the port, so that another program's is noticed before models are loaded."""
    bound = socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET)
    with _explaining_ports(config):
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((config.host, config.port))
    return bound


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


class Protocol(H11Protocol):
    """uvicorn's protocol, which ends connections whose requests come, or whose answers are read, too slowly.

    When all connections are in use, a new one takes the place of another, from the address with the most that have
    no whole request: of one with a part of one or without any so far, or else of one that waits for its next request.
    """

    waits: bool
    """Whether the connection has no whole request."""
    begun: bool
    """Whether a part of it has come."""
    answered: bool
    """Whether an earlier one was answered."""
    since: float
    """When it began to wait, or the request to come."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a connection, in the place of another if there are too many."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined] # asyncio's own attribute, of 256 KiB
        self.address = self.client[0] if self.client else ""
        self.limit: asyncio.TimerHandle | None = None
        self.waits, self.begun, self.answered, self.since = True, False, False, self.loop.time()
        self._set_limit(KEEP_ALIVE_SECONDS)
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [each for each in self.connections if each is not self and each.waits]
            if waiting:
                ((crowd, _),) = Counter(each.address for each in waiting).most_common(1)
                crowded = [each for each in waiting if each.address == crowd]
                last = min(crowded, key=lambda each: (each.answered and not each.begun, each.since))
                last.waits = False  # it leaves `connections` only when the loop comes to it
                last.transport.abort()
            else:
                self._refuse(503, "too many connections: try again")

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; the rest must come in time."""
        if self.waits and not self.begun:
            self.begun, self.since = True, self.loop.time()
            self._set_limit(READ_SECONDS)
        super().data_received(data)
        self._note_whole_request()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have come already."""
        self.waits, self.begun, self.answered, self.since = True, False, True, self.loop.time()
        self._set_limit(KEEP_ALIVE_SECONDS)
        super().on_response_complete()
        self._note_whole_request()

    def _note_whole_request(self) -> None:
        if self.cycle and not self.cycle.response_complete and not self.cycle.more_body:
            self.waits = False
            self._set_limit(0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._set_limit(0)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Limit the time to read an answer."""
        super().pause_writing()
        self._set_limit(READ_SECONDS)

    def resume_writing(self) -> None:
        """Go on with an answer."""
        super().resume_writing()
        self._set_limit(0)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, "the request is not HTTP")

    def _refuse(self, status: int, message: str) -> None:
        body = json.dumps({"error": message}).encode()
        retry = f"Retry-After: {RETRY['Retry-After']}\r\n" if status == 503 else ""
        head = f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{retry}"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _set_limit(self, seconds: float) -> None:
        """Abort the connection after some seconds; 0 is no limit."""
        if self.limit:
            self.limit.cancel()
        self.limit = self.loop.call_later(seconds, self.transport.abort) if seconds else None


class _Uvicorn(uvicorn.Server):
    """A server for which SIGTERM is a request to finish, not an error."""

    should_exit: bool
    force_exit: bool

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__(
            uvicorn.Config(
                server.application(),
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,  # it would contain the text of queries
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            )
        )

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
            self.server.draining = True
            refusal = Failure("the server is being stopped: try again", 503, RETRY)
            for model in self.server.models:  # before uvicorn gives up, without an answer
                asyncio.get_running_loop().call_later(DRAIN_SECONDS - 2, model.batcher.refuse_all, refusal)
        self.should_exit = True
