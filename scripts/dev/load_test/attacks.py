"""What hostile clients do to a server: each attack is tried again and again from an address of its own."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple

ADDRESS = "127.0.2.1"
CLIENTS = 2
PAUSE_SECONDS = 0.05
HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SENTENCE = 600
"""Characters of the longest sentence that is translated as a whole."""
PIECES = "qxzjwyqv" * 150
"""A word that may have a piece per letter."""


def request(route: str, body: Mapping[str, Any] | bytes) -> bytes:
    """Return a whole request: JSON, or a form."""
    form = b"Content-Type: application/x-www-form-urlencoded\r\n" if isinstance(body, bytes) else b""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HEAD % route.encode() + form + b"Content-Length: %d\r\n\r\n" % len(content) + content


class Attack(NamedTuple):
    """What one hostile client does again and again, each time with new connections."""

    parts: Sequence[bytes]
    """What it sends on each connection, one part after the other."""
    pause: float = 0.0
    """Seconds after each part."""
    read: int = 0
    """Bytes that it reads of the answer; -1 for all of it."""
    connections: int = 1

    async def send(self, port: int) -> None:
        """Use one connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ADDRESS, 0))
        try:
            for part in self.parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(self.pause)
            await reader.read(self.read)
        finally:
            writer.close()

    async def repeat(self, port: int) -> None:
        """Attack without end."""
        while True:
            await asyncio.gather(*(self.send(port) for _ in range(self.connections)), return_exceptions=True)
            await asyncio.sleep(PAUSE_SECONDS)


def asking(route: str, body: Mapping[str, Any] | bytes, connections: int = 1) -> Attack:
    """Return an attack that sends a request and reads the whole answer."""
    content = request(route, body).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    return Attack([content], read=-1, connections=connections)


def attacks(source: str, target: str) -> dict[str, Attack]:
    """Return all attacks by name, given the languages of a model."""
    head, languages = HEAD % b"/v1/translate", {"source": source, "target": target}
    words = "a " * (SENTENCE // 2 - 1) + "a\n"
    large = request("/v1/translate", {"text": "a dog\n" * 100, "details": True})
    slow = [head + b"Content-Length: 1000\r\n\r\n", *([b"x"] * 20)]
    sentence = "A man is walking with his dog in the park."
    form = f"&source={source}&target={target}".encode()
    return {
        "a head byte by byte": Attack([bytes([byte]) for byte in head], pause=0.1),
        "half of a body": Attack([head + b"Content-Length: 1000\r\n\r\n" + b"x" * 500, b""], pause=5),
        "wrong lengths": Attack(
            [head + b'Content-Length: 2\r\n\r\n{"text": "a"}' * 50, head + b"Content-Length: -5\r\n\r\n"]
        ),
        "very many headers": Attack([head, *(b"X-%d: y\r\n" % number for number in range(100_000)), b"\r\n"]),
        "chunks of one byte": Attack([head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 30_000]),
        "an answer read slowly": Attack([large], pause=5, read=1),
        "1,100 slow bodies": Attack(slow, pause=1, connections=1_100),
        "1,100 idle connections": Attack([b""], pause=20, connections=1_100),
        "500 sentences on four connections": asking("/v1/translate", {"text": [sentence] * 500}, connections=4),
        "details of long sentences": asking("/v1/translate", {"text": words * 2, "details": True, "nbest": 10}),
        "many candidates": asking("/v1/translate", {"text": words * 60, "nbest": 10}),
        "very many lines": asking("/v1/translate", {"text": "a\n" * 60_000}),
        "60,000 letters without a space": asking("/v1/translate", {"text": "q" * 60_000}),
        "next words after a long word": asking("/v1/choices", {"text": "a", "beginning": PIECES, "count": 50}),
        "markup left open": asking("/translate", {"q": "<a " * 60_000, "format": "html", **languages}),
        "a form of escaped letters": asking("/translate", b"q=" + b"%41" * 60_000 + form),
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
    async def attack() -> None:
        await asyncio.gather(*(attacks(source, target)[name].repeat(port) for _ in range(CLIENTS)))

    asyncio.run(attack())
