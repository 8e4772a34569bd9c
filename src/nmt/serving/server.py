"""Listen, answer, and stop: uvicorn with time limits for slow clients and a clean end."""

import asyncio
import contextlib
import json
import logging
import re
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from multiprocessing import active_children
from typing import ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.config.commands import ServeConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.serving.api import Api, load_detector
from nmt.serving.app import application, read_keys
from nmt.serving.messages import RETRY, log
from nmt.serving.process import ModelProcess
from nmt.serving.queue import Queue

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""Sent with every answer: the page loads nothing from other hosts, runs no inline script, and is not framed."""
MAX_HEADER_BYTES = 16_384
"""The largest head of a request."""
MAX_HELD_BYTES = 200_000
"""The longest body that is kept until it is whole; a longer one is read or refused by the application."""
HEAD_END = re.compile(rb"\n\r?\n")
LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r?\n", re.IGNORECASE)
NO_LENGTH = re.compile(rb"\n(expect|transfer-encoding):", re.IGNORECASE)
MAX_CONNECTIONS = 900
"""Below the 1,024 files that many systems let a process have open."""
MAX_ACCEPTED = 16
"""The most connections that are taken before others have their turn; each takes 0.1 ms."""
MAX_NOT_ACCEPTED = 4_096
"""Connections that the system keeps until they are taken."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
READ_SECONDS = 10
"""Most seconds for a client to send a request, from its first byte."""
READ_BYTES = 4_096
"""The most bytes that are read from a connection before others have their turn: h11 takes 25 microseconds for a chunk,
which may be a single byte."""
KEEP_ALIVE_SECONDS = 15
"""Seconds for which a connection stays open without a request, and to read an answer."""
DRAIN_SECONDS = 30
"""Most seconds to finish open requests after SIGTERM."""
THREAD_SECONDS = 0.0005
"""Seconds for which a thread that splits a long text may keep Python's lock. With Python's own 5 ms, every answer of
others would wait several times that long."""


def serve(config: Config) -> None:
    """Load the models, and answer requests until SIGTERM or SIGINT; then finish the open ones."""
    asyncio.run(_serve(config))


async def _serve(config: Config) -> None:
    sys.setswitchinterval(THREAD_SECONDS)
    for name in ("uvicorn", "asyncio"):
        # messages may quote requests; the application reports errors
        logging.getLogger(name).setLevel(logging.CRITICAL)
    keys, named = read_keys(config.serve.key_file), config.serve.named_folders or [(config.name, "")]
    queues = [Queue(ModelProcess(name, config, folder)) for name, folder in named]
    with _bound(config.serve) as listening:
        try:
            await asyncio.gather(*(each.model.start() for each in queues))
            app = application(Api(queues, load_detector()), config.serve, keys)
            working = [asyncio.ensure_future(each.work()) for each in queues]
            await _Uvicorn(app, queues).serve(sockets=[listening])
            for each in working:
                each.cancel()
        finally:
            for process in active_children():
                process.kill()  # also in the middle of a batch


@contextlib.contextmanager
def _bound(config: ServeConfig) -> Iterator[socket.socket]:
    """Take the port, so that another program's is noticed before models are loaded."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio sends small answers immediately only if the protocol is named; otherwise they take 40 ms longer
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as found:
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((config.host, config.port))
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserError(
                f"cannot listen on serve.host={config.host}, serve.port={config.port}: {reason}; choose others"
            ) from error
        yield found


class Protocol(H11Protocol):
    """uvicorn's protocol, which ends connections whose requests come, or whose answers are read, too slowly.

    When all connections are in use, a new one takes the place of another: of the one that has had no whole request for
    the longest time, from the address with the most of these.
    """

    waiting: ClassVar[defaultdict[str, dict["Protocol", None]]] = defaultdict(dict)
    """Connections that have no whole request, by address; the one that has waited longest is first."""
    timer: asyncio.TimerHandle | None = None
    begun = False
    """Whether a part of the next request has come."""
    needed = 0
    """The bytes to wait for."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a connection, in the place of another if there are too many."""
        super().connection_made(transport)
        self.held = bytearray()  # what has come of a request that is not whole
        transport.max_size = READ_BYTES  # type: ignore[attr-defined] # asyncio's own attribute, of 256 KiB
        if len(self.connections) > MAX_CONNECTIONS:
            crowd = max(self.waiting.values(), key=len, default={})
            if not crowd:
                self._refuse(503, "too many connections: try again")
                return
            oldest = next(iter(crowd))
            oldest._stop_waiting()  # it leaves `connections` only when the loop comes to it
            oldest.transport.abort()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; the rest must come in time."""
        if not self.begun:
            self.begun = True
            self._set_timer(READ_SECONDS)
        self.held += data
        if len(self.held) >= self.needed:
            self.needed = 0 if self._is_within_request else _length_of_request(self.held)
        if len(self.held) >= self.needed:
            whole, self.held, self.needed = bytes(self.held), bytearray(), 0
            super().data_received(whole)
            self._note_whole_request()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have come already."""
        self._wait()
        super().on_response_complete()
        self._note_whole_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, or say with the answer to its open request that no other one will be read."""
        if self.cycle:
            self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, "the request is not HTTP")

    def _refuse(self, status: int, message: str) -> None:
        body = json.dumps({"error": message})
        head = f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        retry = f"Retry-After: {RETRY['Retry-After']}\r\n" if status == 503 else ""
        self.transport.write(f"{head}{retry}Connection: close\r\n\r\n{body}".encode())
        self.transport.close()

    def _wait(self) -> None:
        self.waiting[self._address][self] = None
        self.begun = False
        self._set_timer(KEEP_ALIVE_SECONDS)

    def _note_whole_request(self) -> None:
        if self.cycle and not self.cycle.response_complete and not self.cycle.more_body:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        self._set_timer(0)
        self.waiting[self._address].pop(self, None)
        if not self.waiting[self._address]:
            del self.waiting[self._address]

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def _is_within_request(self) -> bool:
        """Whether h11 has the beginning of the request to which the next bytes belong."""
        return self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])

    def _set_timer(self, seconds: float) -> None:
        """Abort the connection after some seconds; 0 is no limit."""
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_later(seconds, self.transport.abort) if seconds else None


def _length_of_request(beginning: bytearray) -> int:
    """Return the bytes for which reading a request waits, because an unfinished one is cheap only before it is parsed.

    They are 0 if the length is not told, or the client waits for an answer to the head.
    """
    end = HEAD_END.search(beginning)
    if not end:
        return len(beginning) + (beginning[:1].isalpha() and len(beginning) < MAX_HEADER_BYTES)
    length = LENGTH.search(beginning, 0, end.end())
    if not length or int(length[1]) > MAX_HELD_BYTES or NO_LENGTH.search(beginning, 0, end.end()):
        return 0
    return end.end() + int(length[1])


class _Uvicorn(uvicorn.Server):
    """A server for which SIGTERM is a request to finish, not an error."""

    should_exit: bool
    force_exit: bool

    def __init__(self, app: object, queues: Sequence[Queue]) -> None:
        self.queues = queues
        super().__init__(
            uvicorn.Config(
                app,
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,  # it would contain the text of queries
                server_header=False,
                headers=list(HEADERS.items()),
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
                backlog=MAX_ACCEPTED,  # asyncio takes as many at a time
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, only now: a proxy takes it as a sign that the server answers."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(MAX_NOT_ACCEPTED)
            host, port = each.getsockname()[:2]
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            print(f"serving {', '.join(each.model.name for each in self.queues)} at http://{address}", flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Finish on SIGTERM and SIGINT. uvicorn would then end the process by the same signal."""
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._finish, number)
        yield

    def _finish(self, number: int) -> None:
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        elif not self.should_exit:
            log("finishing open requests")
            for each in self.queues:  # before uvicorn gives up, without an answer
                asyncio.get_running_loop().call_later(DRAIN_SECONDS - 2, each.refuse_all)
        self.should_exit = True
