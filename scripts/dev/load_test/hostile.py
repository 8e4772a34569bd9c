"""Clients that try to stop a server: each repeats one kind of attack until it is cancelled."""

import asyncio
import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from load_test import worst_cases

HOST = "127.0.0.1"
PAUSE_SECONDS = 0.05
BYTE_SECONDS = 0.1
"""Seconds between two bytes of a client that sends or reads slowly."""
HEADERS = 100_000
"""Headers of one request, far more than a server reads."""
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
Attack = Callable[[int], Awaitable[None]]


async def repeat(attack: Attack, port: int) -> None:
    """Repeat an attack. A server may close any connection, or accept none for a while."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            await attack(port)
        await asyncio.sleep(PAUSE_SECONDS)


async def take_turns(port: int, seconds: float, first: int, began: dict[str, float]) -> None:
    """Attack in each way for an equal part of the time, beginning with one of them; note when each one began."""
    kinds = list(attacks(*await worst_cases.languages_of(port)).items())
    for name, attack in kinds[first % len(kinds) :] + kinds[: first % len(kinds)]:
        began.setdefault(name, time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds / len(kinds)):
                await repeat(attack, port)


def attacks(source: str, target: str) -> dict[str, Attack]:
    """Return all attacks by name, those by whole requests among them, given the languages of a model."""
    asking = {name: _asking(route, body) for name, route, body in worst_cases.requests(source, target)}
    return {**odd_attacks(), **asking}


def odd_attacks() -> dict[str, Attack]:
    """Return the attacks by name that do not send a whole request, or do not read its answer."""
    odd = [send_junk, send_half, send_wrong_length, send_headers, send_chunks]
    kinds = [vanish, send_slowly, *odd, read_slowly, stay_idle]
    return {kind.__name__.replace("_", " "): kind for kind in kinds}


async def vanish(port: int) -> None:
    """Do not wait for the answer."""
    body = json.dumps({"text": "A man is walking his dog."}).encode()
    await _send(port, [HEAD % len(body) + body])


async def send_slowly(port: int) -> None:
    """Send a request byte by byte."""
    await _send(port, (bytes([byte]) for byte in HEAD % 99 + b"{" * 50), BYTE_SECONDS)


async def send_junk(port: int) -> None:
    """Send what is no request, then a body that is no JSON."""
    await _send(port, [os.urandom(500)])
    await _send(port, [HEAD % 500 + os.urandom(500)])


async def send_half(port: int) -> None:
    """Send half of the body that was announced, and wait."""
    await _send(port, [HEAD % 1000 + b"x" * 500, b""], 5)


async def send_wrong_length(port: int) -> None:
    """Announce less than is sent, a negative number, and none."""
    await _send(port, [HEAD % 2 + b'{"text": "a"}' * 50])
    await _send(port, [HEAD % -5 + b"{}"])
    await _send(port, [(HEAD % 7).replace(b": 7", b": 1e9") + b"{}"])


async def send_headers(port: int) -> None:
    """Send very many headers."""
    lines = (b"X-%d: y\r\n" % number for number in range(HEADERS))
    parts = iter(lambda: b"".join(itertools.islice(lines, 1000)), b"")
    await _send(port, itertools.chain([b"GET /languages HTTP/1.1\r\nHost: 127.0.0.1\r\n"], parts, [b"\r\n"]))


async def send_chunks(port: int) -> None:
    """Send each byte of a large body in a chunk of its own."""
    await worst_cases.send_chunks(port)


async def read_slowly(port: int) -> None:
    """Ask for a large answer and read it byte by byte."""
    body = json.dumps({"text": "a dog\n" * 100, "details": True}).encode()
    reader, writer = await asyncio.open_connection(HOST, port, limit=1)
    try:
        writer.write(HEAD % len(body) + body)
        while await reader.read(1):
            await asyncio.sleep(BYTE_SECONDS)
    finally:
        writer.close()


async def stay_idle(port: int) -> None:
    """Keep a connection open without a request."""
    await _send(port, [b""], 20)


def _asking(route: str, body: worst_cases.Body) -> Attack:
    async def ask(port: int) -> None:
        await worst_cases.ask(port, route, body)

    return ask


async def _send(port: int, parts: Iterator[bytes] | list[bytes], seconds: float = 0.0) -> None:
    """Send parts of a request with pauses, and close the connection."""
    _, writer = await asyncio.open_connection(HOST, port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(seconds)
            if writer.is_closing():
                break
    finally:
        writer.close()
