"""What hostile clients do to a server: each attack is tried again and again from an address of its own."""

import asyncio
import itertools
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import Any

ADDRESS = "127.0.2.1"
CLIENTS = 2
PAUSE_SECONDS = 0.05
HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SENTENCE = 600
"""Characters of the longest sentence that is translated as a whole."""
PIECES = "qxzjwyqv" * 150
"""A word that may have a piece per letter."""
Attack = Callable[[int, str], Awaitable[None]]


async def send(port: int, address: str, parts: Iterable[bytes], *, wait: float = 0.0, read: int = 0) -> bytes:
    """Send parts of a request, with pauses between them, and read this many bytes of the answer; -1 reads all."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(wait)
        return await reader.read(read) if read else b""
    finally:
        writer.close()


def request(route: str, body: Mapping[str, Any] | bytes) -> bytes:
    """Return a whole request: JSON, or a form."""
    form = b"Content-Type: application/x-www-form-urlencoded\r\n" if isinstance(body, bytes) else b""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HEAD % route.encode() + form + b"Content-Length: %d\r\n\r\n" % len(content) + content


def sending(*parts: bytes, wait: float = 0.0) -> Attack:
    """Return an attack that sends parts of a request and does not wait for an answer."""

    async def attack(port: int, address: str) -> None:
        await send(port, address, parts, wait=wait)

    return attack


def asking(route: str, body: Mapping[str, Any] | bytes) -> Attack:
    """Return an attack that sends a request and reads the whole answer."""

    async def attack(port: int, address: str) -> None:
        content = request(route, body).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        await send(port, address, [content], read=-1)

    return attack


async def read_slowly(port: int, address: str) -> None:
    """Ask for a large answer, and read a few bytes of it."""
    await send(port, address, [request("/v1/translate", {"text": "a dog\n" * 100, "details": True})], wait=5, read=1)


async def many_slow_bodies(port: int, address: str) -> None:
    """Send 1,100 bodies at one byte a second."""
    head = HEAD % b"/v1/translate" + b"Content-Length: 1000\r\n\r\n"
    slow = (send(port, address, itertools.chain([head], [b"x"] * 20), wait=1) for _ in range(1_100))
    await asyncio.gather(*slow, return_exceptions=True)


async def many_idle_connections(port: int, address: str) -> None:
    """Keep 1,100 connections open without a request."""
    await asyncio.gather(*(send(port, address, [b""], wait=20) for _ in range(1_100)), return_exceptions=True)


async def four_long_requests(port: int, address: str) -> None:
    """Send 500 sentences on each of four connections."""
    ask = asking("/v1/translate", {"text": ["A man is walking with his dog in the park."] * 500})
    await asyncio.gather(*(ask(port, address) for _ in range(4)))


def attacks(source: str, target: str) -> dict[str, Attack]:
    """Return all attacks by name, given the languages of a model."""
    head, languages = HEAD % b"/v1/translate", {"source": source, "target": target}
    words = "a " * (SENTENCE // 2 - 1) + "a\n"
    form = f"&source={source}&target={target}".encode()
    return {
        "vanish": sending(request("/v1/translate", {"text": "A man is walking his dog."})),
        "junk": sending(os.urandom(500), head + b"Content-Length: 500\r\n\r\n" + os.urandom(500)),
        "a head byte by byte": sending(*(bytes([byte]) for byte in head), wait=0.1),
        "half of a body": sending(head + b"Content-Length: 1000\r\n\r\n" + b"x" * 500, b"", wait=5),
        "wrong lengths": sending(
            head + b'Content-Length: 2\r\n\r\n{"text": "a"}' * 50, head + b"Content-Length: -5\r\n\r\n"
        ),
        "very many headers": sending(head, *(b"X-%d: y\r\n" % number for number in range(100_000)), b"\r\n"),
        "chunks of one byte": sending(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 30_000),
        "a length and chunks": sending(head + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "an answer read slowly": read_slowly,
        "1,100 slow bodies": many_slow_bodies,
        "1,100 idle connections": many_idle_connections,
        "500 sentences on four connections": four_long_requests,
        "details of long sentences": asking("/v1/translate", {"text": words * 2, "details": True, "nbest": 10}),
        "many candidates": asking("/v1/translate", {"text": words * 60, "nbest": 10}),
        "empty texts": asking("/v1/translate", {"text": [""] * 45_000}),
        "very many lines": asking("/v1/translate", {"text": "a\n" * 60_000}),
        "60,000 letters without a space": asking("/v1/translate", {"text": "q" * 60_000}),
        "next words after a long word": asking("/v1/choices", {"text": "a", "beginning": PIECES, "count": 50}),
        "a long beginning": asking("/v1/translate", {"text": "a", "beginnings": [PIECES]}),
        "markup left open": asking("/translate", {"q": "<a " * 60_000, "format": "html", **languages}),
        "very many elements": asking("/translate", {"q": "<p>a" * 45_000, "format": "html", **languages}),
        "a form of escaped letters": asking("/translate", b"q=" + b"%41" * 60_000 + form),
        "a form of very many fields": asking("/translate", b"q=a" + form + b"&" * 190_000),
        "deep JSON": asking("/v1/translate", b"[" * 190_000),
    }


@contextmanager
def attacking(port: int, source: str, target: str, name: str) -> Iterator[None]:
    """Attack a server in one way from another process, so that honest clients are not slowed by its own work."""
    process = get_context("spawn").Process(target=_attack, args=(port, source, target, name), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _attack(port: int, source: str, target: str, name: str) -> None:
    attack = attacks(source, target)[name]

    async def repeat() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await attack(port, ADDRESS)
            await asyncio.sleep(PAUSE_SECONDS)

    async def repeat_all() -> None:
        await asyncio.gather(*(repeat() for _ in range(CLIENTS)))

    asyncio.run(repeat_all())
