"""Connections of clients that send their requests in odd ways."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")

from uvicorn.server import ServerState

from nmt.config.commands import ServeConfig
from nmt.serving import protocol, server
from nmt.serving.guard import Guard
from nmt.serving.metrics import Metrics

CHUNKS = 20_000


async def exchange(app: Callable[..., Any], content: bytes) -> bytes:
    """Send bytes to an application behind the server's own protocol; return what it answers."""
    config = server._uvicorn_config(app, ServeConfig())
    config.load()

    made = partial(config.http_protocol_class, config=config, server_state=ServerState(), app_state={})
    listening = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(content)
        answer = await reader.read()
        writer.close()
        return answer
    finally:
        listening.close()


class Parts:
    """An application that notes the parts in which the bodies of requests come."""

    def __init__(self) -> None:
        self.bodies: list[list[bytes]] = []

    async def __call__(self, _: Any, receive: Any, send: Any) -> None:
        parts: list[bytes] = []
        self.bodies.append(parts)
        more = True
        while more:
            message = await receive()
            parts.append(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


CHUNKED = b"POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
SINGLE = b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"
"""A body in chunks of one byte."""


def test_others_have_their_turn_while_a_body_comes_in_many_small_chunks() -> None:
    app = Parts()
    answer = asyncio.run(exchange(app, CHUNKED + SINGLE))
    assert answer.startswith(b"HTTP/1.1 200")
    (parts,) = app.bodies
    assert b"".join(parts) == b"x" * CHUNKS
    assert max(map(len, parts)) < CHUNKS / 20  # the application had its turn after each small part


def test_a_body_of_known_length_is_read_in_large_parts_and_what_follows_it_in_small_ones() -> None:
    app, body = Parts(), b"x" * 200_000
    head = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = asyncio.run(exchange(app, head + body + CHUNKED + SINGLE))
    assert answer.count(b"HTTP/1.1 200") == 2
    large, small = app.bodies
    assert b"".join(large) == body
    assert len(large) <= 2 * len(body) / protocol.MAX_READ_BYTES  # in parts of READ_BYTES there would be 200
    assert b"".join(small) == b"x" * CHUNKS
    assert max(map(len, small)) <= protocol.READ_BYTES


@pytest.mark.parametrize("connections", [1, 3])
def test_no_more_connections_are_served(connections: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", connections)

    async def ask(count: int) -> list[bytes]:
        config = server._uvicorn_config(held, ServeConfig())
        config.load()
        state = ServerState()
        made = partial(config.http_protocol_class, config=config, server_state=state, app_state={})
        listening = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        opened = [await asyncio.open_connection(*listening.sockets[0].getsockname()) for _ in range(count)]
        for _, writer in opened:  # one after the other, so that the last one is the one too many
            writer.write(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            await asyncio.sleep(0.05)
        go.set()
        answers = [await reader.readline() for reader, _ in opened]
        for _, writer in opened:
            writer.close()
        listening.close()
        return answers

    async def held(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await Parts()(scope, receive, send)

    for count, refused in ((connections, 0), (connections + 1, 1)):
        go = asyncio.Event()
        answers = asyncio.run(ask(count))
        assert [b" 200 " in each for each in answers].count(False) == refused, answers


def test_a_length_beside_chunks_does_not_count() -> None:
    app = Parts()
    head = CHUNKED.replace(b"Host", b"Content-Length: 100000\r\nHost")
    assert asyncio.run(exchange(app, head + SINGLE)).startswith(b"HTTP/1.1 200")
    assert max(map(len, app.bodies[0])) <= protocol.READ_BYTES


def test_a_body_in_too_many_chunks_is_refused_before_it_has_been_read() -> None:
    app = Parts()
    guard = Guard(app, ServeConfig(hosts=["*"]), Metrics(), frozenset())
    with_head = protocol.READ_BYTES // 6  # the chunks that come with the head are not counted
    answer = asyncio.run(exchange(guard, CHUNKED + b"1\r\nx\r\n" * (1_001 + with_head)))  # and does not end
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    assert "at most 1000 chunks" in json.loads(body)["error"]
    assert app.bodies == []
    few = b"%x\r\n%s\r\n" % (200, b"x\n" * 100)
    answer = asyncio.run(exchange(guard, CHUNKED + few * 15 + b"0\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 200")
