"""The protocol of connections: uvicorn's, with limits for slow clients, and equal turns for all."""

import asyncio
from collections.abc import Mapping

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.errors import CLOSE, RequestError

READ_BYTES = 1_024
"""The most bytes that are read from a connection before others have their turn, if they may be many small parts. A
chunk of one byte, which takes six, costs about 25 microseconds; asyncio's own limit of 256 KiB would hold 43,000 of
them."""
MAX_READ_BYTES = 32_768
"""The most bytes of a body of known length that are read at a time. They are a single part, however many they are."""
MAX_CHUNKS = 1_000
"""The most chunks of a body; clients that stream send a few kilobytes in each."""
LINES = "lines"
"""The place of the number of lines of a body in the state of its request: each chunk has two, or more if its content
has some."""
MAX_DIGITS = 18
"""The most digits of a length that is taken for one."""


def timed_protocol(seconds: float, connections: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, but with limits for clients that send headers, or read answers, too slowly.

    A connection more than there may be takes the place of the one that has waited longest for a request.
    """
    buffer = memoryview(bytearray(MAX_READ_BYTES))  # for all connections: what is read is copied before the next read

    class TimedProtocol(H11Protocol, asyncio.BufferedProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.announced, self.chunked = 0, False
            self.head_limit: asyncio.TimerHandle | None = None
            self.read_limit: asyncio.TimerHandle | None = None
            self.replaced, self.heard = False, self.loop.time()
            self._limit_head()
            if len(self.connections) > connections:
                self._replace_idle()

        def get_buffer(self, sizehint: int) -> memoryview:
            return buffer[: max(READ_BYTES, min(self.announced, MAX_READ_BYTES))]

        def buffer_updated(self, nbytes: int) -> None:
            data = bytes(buffer[:nbytes])
            self.announced -= nbytes
            if self.chunked:
                self.scope["state"][LINES] += data.count(b"\n")
            self.data_received(data)

        def handle_events(self) -> None:
            last = self.cycle
            super().handle_events()
            if self.cycle is not last:  # a new request, of whose body at most READ_BYTES have come with its head
                headers = dict(self.headers)
                self.announced = _announced_bytes(headers) - READ_BYTES
                self.scope["state"][LINES] = 0
                self.chunked = b"transfer-encoding" in headers

        def data_received(self, data: bytes) -> None:
            self.heard = self.loop.time()
            if self._waits_for_head():
                self._limit_head()
            super().data_received(data)
            if not self._waits_for_head() and self.head_limit:
                self.head_limit.cancel()
                self.head_limit = None

        def connection_lost(self, exc: Exception | None) -> None:
            for limit in (self.head_limit, self.read_limit):
                if limit:
                    limit.cancel()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self.read_limit = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.read_limit:
                self.read_limit.cancel()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self.loop.call_later(seconds, self.transport.abort)  # in case the client does not read the last answer

        def _replace_idle(self) -> None:
            idle = [each for each in self.connections if each is not self and each.is_idle()]
            if idle:
                oldest = min(idle, key=lambda each: each.heard)
                oldest.replaced = True  # it leaves `connections` only when the loop comes to it
                oldest.transport.abort()

        def is_idle(self) -> bool:
            return self._waits_for_head() and not self.replaced

        def _waits_for_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _limit_head(self) -> None:
            if self.head_limit is None:
                self.head_limit = self.loop.call_later(seconds, self.transport.abort)

    return TimedProtocol


def _announced_bytes(headers: Mapping[bytes, bytes]) -> int:
    """Return the length of a body that does not come in chunks; 0 if it is not known."""
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or len(length) > MAX_DIGITS:
        return 0
    return int(length)


def check_chunks(scope: Scope) -> None:
    """Refuse a body that comes in very many chunks, each of which costs as much as a large one."""
    if scope.get("state", {}).get(LINES, 0) > 2 * MAX_CHUNKS:
        raise RequestError(413, f"a body may come in at most {MAX_CHUNKS} chunks: send larger ones", CLOSE)
