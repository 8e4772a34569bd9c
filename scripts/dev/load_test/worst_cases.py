"""Send one server the worst single requests that it accepts, and watch it meanwhile."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from shared import processes

HOST = "127.0.0.1"
MAX_SECONDS = 90
"""Seconds after which an answer is no longer waited for."""
WATCH_SECONDS = 0.05
"""Seconds between two looks at the server."""
SETTLE_SECONDS = 5
"""Seconds in which the other processes of a model are usually there as well, after the first one."""
MAX_BODY = 200_000
"""The bytes of a body that a server reads by default."""
ATTACK_SECONDS = 3.0
"""Seconds for which an attack that does not send a whole request is repeated."""
FORM = "application/x-www-form-urlencoded"
MAX_IDLE = 1_100
"""Connections that ask for nothing: more than a server accepts by default."""
HEALTH = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
SENTENCE = 600
"""Characters of the longest sentence that the server translates as a whole."""
TERMS = 300
"""Characters of the longest terms that a translation can be asked to contain."""


@dataclass
class Watched:
    """What was seen of a server while a request was answered."""

    pause: float = 0.0
    """The longest time that /health took, in seconds."""
    memory: int = 0
    """The largest resident memory of the server and of its models, in bytes."""
    refused: int = 0
    """The answers of /health other than 200."""


Body = Mapping[str, Any] | bytes
"""JSON, or a form."""
Work = Callable[[int], Awaitable[Any]]


def requests(source: str, target: str) -> Iterator[tuple[str, str, Body]]:
    """Yield the name, the route and the body of each request, the worst of its kind, given a model's languages."""
    words, marks = "a " * (SENTENCE // 2 - 1) + "a\n", "#" * SENTENCE + "\n"
    everything = {"details": True, "nbest": 10, "beam": 16}
    terms = [["#" * length + end, "y"] for length in range(20) for end in "abcde"]
    yield "details of one long sentence", "/v1/translate", {"text": words, **everything}
    yield "details of ten long sentences", "/v1/translate", {"text": words * 10, **everything}
    yield "a wide beam for many sentences", "/v1/translate", {"text": words * 60, "beam": 16}
    yield "empty texts", "/v1/translate", {"text": [""] * 45_000}
    yield "next words of a long text", "/v1/choices", {"text": "a " * 90_000, "beginning": "a " * 600, "count": 50}
    yield "next words after a long word", "/v1/choices", {"text": "a", "beginning": "qxzjwyqv" * 150, "count": 50}
    yield "a long beginning", "/v1/translate", {"text": "a", "beginnings": ["qxzjwyqv" * 150], "beam": 16}
    yield "terms that nearly match", "/v1/translate", {"text": marks * 250, "terms": terms}
    for name, length in (("a long term", TERMS), ("a term that is too long", TERMS + 1)):
        yield name, "/v1/translate", {"text": "a", "terms": [["a", "x" * length]], "beam": 16}
    terms = [[letter, letter * (TERMS // len(ascii_lowercase))] for letter in ascii_lowercase]
    yield "a term per word", "/v1/translate", {"text": " ".join(ascii_lowercase), "terms": terms, "beam": 16}
    languages = {"source": source, "target": target}
    yield "markup left open", "/translate", {"q": "<a " * 60_000, "format": "html", **languages}
    yield "very many elements", "/translate", {"q": "<p>a" * 45_000, "format": "html", **languages}
    yield "very many lines", "/v1/translate", {"text": "a\n" * 60_000}
    form = f"&source={source}&target={target}".encode()
    yield "a form of escaped letters", "/translate", b"q=" + b"%41" * 60_000 + form
    yield "a form of very many fields", "/translate", b"q=a" + form + b"&" * 190_000


async def languages_of(port: int) -> tuple[str, str]:
    """Return the languages of a model of the server."""
    content = f"GET /languages HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(content.encode())
    found = json.loads((await reader.read()).partition(b"\r\n\r\n")[2])
    writer.close()
    return next((each["code"], each["targets"][0]) for each in found if each["targets"])


async def measure(port: int, pid: int, attacks: Mapping[str, Work]) -> dict[str, Any]:
    """Return what each request did to the server, and each attack that does not send a whole request."""
    found: dict[str, Any] = {}
    found["idle connections"] = await _watched(port, pid, _stay_idle(port))
    status, _ = await _exchange(port, b"GET /languages HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n")
    found["a foreign host"] = {"status": status}
    found["a body in chunks of one byte"] = await _watched(port, pid, send_chunks(port))
    for name, attack in attacks.items():
        found[name] = await _watched(port, pid, _repeat(attack, port))
    for name, route, body in requests(*await languages_of(port)):
        await _until_ready(port)
        found[name] = await _watched(port, pid, ask(port, route, body))
    return found


async def _repeat(attack: Work, port: int) -> tuple[str, int]:
    """Repeat an attack for some seconds; nobody reads the answers."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ATTACK_SECONDS):
            while True:
                with suppress(OSError, asyncio.IncompleteReadError):
                    await attack(port)
                await asyncio.sleep(WATCH_SECONDS)
    return "not read", 0


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of the worst cases, whose last line has the largest figure of each column."""
    lines = [
        "| hostile kind | status | bytes of the answer | seconds | longest pause of /health | MiB more |",
        "|---|---|---|---|---|---|",
    ]
    columns = ("bytes", "seconds", "pause", "MiB more")
    worst = {name: max((each.get(name, 0) for each in found.values()), default=0) for name in columns}
    for kind, each in {**found, "the worst of all": {"status": "", **worst}}.items():
        figures = (f"{each[name]:,}" if name in each else "" for name in columns)
        lines.append(" | ".join(["| " + kind, str(each["status"]), *figures]) + " |")
    return "\n".join(lines)


async def _until_ready(port: int) -> None:
    """Wait until the processes that the last request has cost are there again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(MAX_SECONDS):
            while (await _exchange(port, HEALTH))[0] != 200:
                await asyncio.sleep(WATCH_SECONDS)
            await asyncio.sleep(SETTLE_SECONDS)


async def _watched(port: int, pid: int, work: Any) -> dict[str, Any]:
    watched, before = Watched(), _memory(pid)
    watching = [asyncio.ensure_future(each) for each in (_watch_health(port, watched), _watch_memory(pid, watched))]
    await asyncio.sleep(4 * WATCH_SECONDS)
    began = time.monotonic()
    try:
        status, size = await asyncio.wait_for(work, MAX_SECONDS)
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        status, size = type(error).__name__, 0
    seconds = time.monotonic() - began
    for each in watching:
        each.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return {
        "status": status,
        "bytes": size,
        "seconds": round(seconds, 2),
        "pause": round(watched.pause, 2),
        "MiB more": max(0, watched.memory - before) >> 20,
        "health refused": watched.refused,
    }


async def _watch_health(port: int, watched: Watched) -> None:
    while True:
        began = time.monotonic()
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                status, _ = await _exchange(port, HEALTH)
                watched.refused += status != 200
            finally:
                watched.pause = max(watched.pause, time.monotonic() - began)
        await asyncio.sleep(WATCH_SECONDS)


async def _watch_memory(pid: int, watched: Watched) -> None:
    while True:
        watched.memory = max(watched.memory, _memory(pid))
        await asyncio.sleep(WATCH_SECONDS)


def _memory(pid: int) -> int:
    total = 0
    for process in [pid, *processes.model_processes(pid)]:
        with suppress(OSError):
            total += processes.memory(process)
    return total


async def ask(port: int, route: str, body: Body) -> tuple[int, int]:
    """Send a request on a connection of its own; return the status and the bytes of the answer."""
    content, kind = (body, FORM) if isinstance(body, bytes) else (json.dumps(body).encode(), "application/json")
    head = (
        f"POST {route} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return await _exchange(port, head.encode() + content)


async def send_chunks(port: int) -> tuple[int, int]:
    """Send as many bytes as a server reads, each in a chunk of its own; return the status and the bytes of the answer.

    They are no JSON, so that only reading them takes time.
    """
    head = f"POST /v1/translate HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    return await _exchange(port, head.encode() + b"1\r\n \r\n" * MAX_BODY + b"0\r\n\r\n")


async def _exchange(port: int, content: bytes) -> tuple[int, int]:
    """Send bytes on a connection of their own; return the status and the bytes of the answer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(content)
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        size = 0
        while part := await reader.read(1 << 16):
            size += len(part)
        return status, size
    finally:
        writer.close()


async def _stay_idle(port: int) -> tuple[int, int]:
    """Open connections without a request; return the status that an ordinary request then gets."""
    opened = await asyncio.gather(*(asyncio.open_connection(HOST, port) for _ in range(MAX_IDLE)))
    try:
        await asyncio.sleep(1)
        return await ask(port, "/v1/translate", {"text": "a"})
    finally:
        for _, writer in opened:
            writer.close()
