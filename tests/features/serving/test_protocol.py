"""Connections of clients that send their requests in odd ways."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")

from uvicorn.server import ServerState

from nmt.features.serving import server
from nmt.features.serving.settings import ServeConfig

CHUNKS = 20_000


async def exchange(app: Callable[..., Any], content: bytes) -> bytes:
    """Send bytes to an application behind the server's own protocol; return what it answers."""
    config = server._uvicorn_config(app, ServeConfig())
    config.load()

    protocol = partial(config.http_protocol_class, config=config, server_state=ServerState(), app_state={})
    listening = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(content)
        answer = await reader.read()
        writer.close()
        return answer
    finally:
        listening.close()


def test_others_have_their_turn_while_a_body_comes_in_many_small_chunks() -> None:
    parts: list[bytes] = []

    async def app(_: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            parts.append(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    head = b"POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = asyncio.run(exchange(app, head + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"".join(parts) == b"x" * CHUNKS
    assert max(map(len, parts)) < CHUNKS / 20  # the application had its turn after each small part
