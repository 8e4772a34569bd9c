"""Measure a server on this machine: the latency of honest clients, alone and beside hostile ones.

    .venv/bin/python scripts/dev/load_test --model outputs/multi30k --text valid.en --seconds 60

It starts `nmt serve` on 127.0.0.1. Honest clients send one sentence after the other, each from an address of its own;
then two hostile clients attack from one other address, in each way for an equal part of --seconds. It prints a table:
answers per second, p50 and p99 of the latency in seconds, answers that are not 200 or another text than alone, and the
memory of the server and of the model's process in MiB.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from load_test.attacks import attacking, attacks, request
from shared import processes

WARM_UP_SECONDS = 3.0
Texts = dict[str, str]
"""The answer to each sentence."""


@dataclass
class Honest:
    """What honest clients saw."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0

    def row(self, name: str, pid: int) -> str:
        """Return a row of the table."""
        ordered = sorted(self.latencies) or [float("inf")]
        p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
        memory = "".join(f" + {processes.memory(each) >> 20}" for each in processes.model_processes(pid))
        rate = len(self.latencies) / self.seconds
        return (
            f"| {name} | {rate:.0f} | {p50:.3f} | {p99:.3f} | {self.errors} | {processes.memory(pid) >> 20}{memory} |"
        )


async def measure(port: int, lines: Sequence[str], seconds: float, clients: int, expected: Texts) -> Honest:
    """Let honest clients ask for some time."""
    found, began = Honest(), time.monotonic()
    end = began + seconds
    await asyncio.gather(*(_ask_until(end, port, f"127.0.1.{1 + number}", lines[number:], found, expected)
                           for number in range(clients)))  # fmt: skip
    found.seconds = time.monotonic() - began
    return found


async def _ask_until(end: float, port: int, address: str, lines: Sequence[str], found: Honest, expected: Texts) -> None:
    """Send one sentence after the other; a text that differs from the first answer to the sentence is an error."""
    streams = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    for number in count():
        if time.monotonic() >= end:
            break
        line, began = lines[number % len(lines)], time.monotonic()
        try:
            status, answer = await _exchange(*streams, request("/v1/translate", {"text": line}))
        except (OSError, asyncio.IncompleteReadError):
            found.errors += 1
            streams = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            continue
        found.latencies.append(time.monotonic() - began)
        text = answer["translations"][0]["text"] if status == 200 else ""
        found.errors += status != 200 or expected.setdefault(line, text) != text
    streams[1].close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, content: bytes) -> tuple[int, Any]:
    writer.write(content)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].split()[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


@asynccontextmanager
async def server(model: Path, words: Sequence[str]) -> AsyncIterator[tuple[int, int]]:
    """Start a server; yield its port and its process id; stop it by SIGTERM, and check its exit code."""
    folder = model.resolve()
    run_of = (f"name={folder.name}", f"paths.outputs={folder.parent}", "serve.host=127.0.0.1", "serve.port=0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "nmt", "serve", *run_of, *words, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    line = (await process.stdout.readline()).decode()
    try:
        yield int(line.rpartition(":")[2]), process.pid
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        if code := await process.wait():
            raise SystemExit(f"the server ended with exit code {code}")


async def _measure_all(arguments: argparse.Namespace, lines: Sequence[str]) -> None:
    async with server(arguments.model, arguments.setting) as (port, pid):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        _, models = await _exchange(reader, writer, b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        writer.close()
        languages = models["models"][0]["source"], models["models"][0]["target"]
        kinds = [name for name in attacks(*languages) if arguments.only in name]
        expected: Texts = {}
        await measure(port, lines, WARM_UP_SECONDS, arguments.clients, expected)
        print("| hostile clients | answers/s | p50 | p99 | errors | MiB |\n|---|---|---|---|---|---|")
        for title in ("none", *kinds, "none, afterwards"):
            seconds = arguments.seconds / (len(kinds) if title in kinds else 4)
            with attacking(port, *languages, title) if title in kinds else nullcontext():
                found = await measure(port, lines, seconds, arguments.clients, expected)
            print(found.row(title, pid), flush=True)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a run")
    parser.add_argument("--text", type=Path, required=True, help="file with a sentence per line")
    parser.add_argument("--seconds", type=float, default=60, help="seconds of all attacks together (60)")
    parser.add_argument("--clients", type=int, default=16, help="honest clients (16)")
    parser.add_argument("--only", default="", help="attacks whose names contain this (all)")
    parser.add_argument("--setting", action="append", default=[], help="of the server, such as engine=ctranslate2")
    arguments = parser.parse_args()
    lines = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(lines) < 2 * arguments.clients:
        parser.error(f"{arguments.text} has {len(lines)} sentences: name a text of at least two per client")
    asyncio.run(_measure_all(arguments, lines))


if __name__ == "__main__":
    main()
