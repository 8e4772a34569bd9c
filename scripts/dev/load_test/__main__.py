"""Measure a server on this machine under load: speed, latency, overload and bad clients.

    .venv/bin/python scripts/dev/load_test --model outputs/multi30k --text valid.en --seconds 60

It starts `nmt serve` on 127.0.0.1, and prints as JSON, and the worst cases as a table:
  translate   sentences per second of `nmt translate` on the same sentences, without the time to load the model, and
              milliseconds of CPU time per sentence
  load        64 clients (or --clients), each with a request at a time: sentences per second, their share of the above,
              p50, p95 and p99 of the latency in seconds, the number of errors, and the milliseconds of CPU time per
              sentence of the server, of its models and of these clients, which share the machine
  overload    900 clients that try again at once: several times what the server can do; 429s, latency of accepted
              requests, memory of the server before and after
  bad clients the same load, while one client per hundred (or --hostile of them) attacks the server in all ways in
              turn: it vanishes, sends and reads slowly, sends junk, halves of requests, wrong lengths, 100,000 headers
              and chunks of one byte, keeps connections open, and sends the worst cases; the p99 is also given for
              each attack, and the memory for each minute; with `load`, also how many times its p99 that is
  worst cases single requests, each the worst of its kind, and the other attacks for three seconds each: status, size
              and time of the answer, the longest pause of /health, and how much more memory the server and its models
              needed; the last line has the largest figures
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.text.lines import read_lines

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from load_test import hostile, worst_cases
from shared import processes
from shared.command_line import at_least, existing_folder, positive, run_tool, tool_parser

HOST = "127.0.0.1"
Requests = Sequence[Sequence[str]]
"""The sentences of each request."""
CLIENTS = 64
HOSTILE = max(1, CLIENTS // 100)
MINUTE = 60.0
IMPATIENCE_SECONDS = 0.2
"""Seconds after which refused clients try again: sooner than they are asked to."""
MAX_SECONDS, MAX_CLIENTS = 3600, 2000
"""The most that this program asks of a machine."""
PARTS = ("translate", "load", "overload", "bad", "worst")
"""The measurements."""


@dataclass
class Measured:
    """What clients saw."""

    seconds: float = 0.0
    sentences: int = 0
    latencies: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    """When each of the latencies ended."""
    statuses: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, Any]:
        """Return the figures."""
        quantiles = {f"p{share}": quantile(self.latencies, share) for share in (50, 95, 99) if self.latencies}
        answered = sum(self.statuses.values())
        errors = answered - self.statuses["200"] - self.statuses["429"] - self.statuses["503"]
        rate = round(self.sentences / self.seconds, 1)
        return {"sentences_per_second": rate, **quantiles, "statuses": dict(self.statuses), "errors": errors}

    def p99_from(self, starts: Mapping[str, float]) -> dict[str, float]:
        """Return the p99 of the answers between each of these times and the next."""
        places = [bisect(self.ends, start) for start in starts.values()]
        parts = pairwise([*places, len(self.ends)])
        return {
            name: quantile(self.latencies[slice(*part)] or [0], 99) for name, part in zip(starts, parts, strict=True)
        }


def quantile(values: Sequence[float], percent: int) -> float:
    """Return the value below which this share of all values lies."""
    return round(sorted(values)[int(len(values) * percent / 100)], 3)


def main() -> None:
    """Run all measurements."""
    arguments = _arguments()
    lines = [line for line in read_lines(Path(arguments.text)) if line.strip()]
    if len(lines) < 2:
        raise UserError(f"{arguments.text} has {len(lines)} sentences: name a text of at least two")
    words = [*arguments.setting, *([f"runtime.threads={arguments.threads}"] if arguments.threads else [])]
    found: dict[str, Any] = {"sentences": len(lines)}
    if "translate" in arguments.parts:
        found["translate"] = translate_speed(arguments.model, lines, words)
    size = arguments.request_sentences
    requests = [lines[start : start + size] for start in range(0, len(lines), size)]
    asyncio.run(_measure_server(arguments, requests, words, found))
    worst = found.pop("worst cases", {})
    print(json.dumps(found, indent=2))
    if worst:
        print("", worst_cases.table(worst), sep="\n")


async def _measure_server(
    arguments: argparse.Namespace, requests: Requests, words: Sequence[str], found: dict[str, Any]
) -> None:
    async with server(arguments.model, words) as (port, pid):
        await load(port, requests, arguments.clients, min(5.0, arguments.seconds))  # the first batches are slower
        if "load" in arguments.parts:
            before = cpu_seconds(pid)
            measured = await load(port, requests, arguments.clients, arguments.seconds)
            spent = {who: seconds - before[who] for who, seconds in cpu_seconds(pid).items()}
            per_sentence = {who: round(1000 * seconds / measured.sentences, 2) for who, seconds in spent.items()}
            found["load"] = {**measured.report(), "cpu_ms_per_sentence": per_sentence}
            if "translate" in found:
                ratio = found["load"]["sentences_per_second"] / found["translate"]["sentences_per_second"]
                found["load"]["share_of_translate"] = round(ratio, 3)
        if "overload" in arguments.parts:
            found["overload"] = await overload(port, pid, requests, arguments)
        if "bad" in arguments.parts:
            found["bad clients"] = await with_bad_clients(
                port, pid, requests, arguments.seconds, arguments.hostile, arguments.clients
            )
            if "load" in found:
                found["bad clients"]["times_p99_of_load"] = round(found["bad clients"]["p99"] / found["load"]["p99"], 2)
        if "worst" in arguments.parts:
            found["worst cases"] = await worst_cases.measure(port, pid, hostile.odd_attacks())


def translate_speed(model: Path, lines: Sequence[str], words: Sequence[str]) -> dict[str, float]:
    """Return the speed of `nmt translate`: the difference between all lines and a single one."""
    seconds, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, chosen in enumerate((lines[:1], lines)):
            text = Path(folder) / f"{number}.txt"
            text.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
            began, before = time.monotonic(), processes.cpu_seconds(os.getpid())
            done = subprocess.run(
                [sys.executable, "-m", "nmt", "translate", *run_of(model), *words, f"input={text}"],
                check=False, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                raise UserError("nmt translate has failed: see above")
            seconds.append(time.monotonic() - began)
            cpu.append(processes.cpu_seconds(os.getpid()) - before)
    more = len(lines) - 1
    return {
        "sentences_per_second": round(more / (seconds[1] - seconds[0]), 1),
        "cpu_ms_per_sentence": round(1000 * (cpu[1] - cpu[0]) / more, 2),
    }


def run_of(model: Path) -> list[str]:
    """Return the settings that name a run."""
    folder = model.resolve()
    return [f"name={folder.name}", f"paths.outputs={folder.parent}"]


@asynccontextmanager
async def server(model: Path, words: Sequence[str]) -> AsyncIterator[tuple[int, int]]:
    """Start a server; yield its port and its process id; stop it by SIGTERM, and check its exit code."""
    command = [sys.executable, "-m", "nmt", "serve", *run_of(model), *words]
    process = await asyncio.create_subprocess_exec(
        *command, f"serve.host={HOST}", "serve.port=0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    line = (await process.stdout.readline()).decode()
    try:
        yield int(line.rpartition(":")[2]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        if code := await process.wait():
            raise SystemExit(f"the server ended with exit code {code}")


async def load(port: int, requests: Requests, clients: int, seconds: float) -> Measured:
    """Let clients send one request after the other for some time."""
    measured, end = Measured(), time.monotonic() + seconds
    waiting = cycle(requests)
    began = time.monotonic()
    await asyncio.gather(*(_client(port, waiting, end, measured) for _ in range(clients)))
    measured.seconds = time.monotonic() - began
    return measured


async def _client(port: int, requests: Iterator[Sequence[str]], end: float, measured: Measured) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    while time.monotonic() < end:
        began, sentences = time.monotonic(), next(requests)
        try:
            status = await ask(reader, writer, sentences)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            measured.statuses[type(error).__name__] += 1
            reader, writer = await asyncio.open_connection(HOST, port)
            continue
        measured.statuses[str(status)] += 1
        if status == 200:
            measured.ends.append(time.monotonic())
            measured.latencies.append(measured.ends[-1] - began)
            measured.sentences += len(sentences)
        elif status in (429, 503):
            await asyncio.sleep(IMPATIENCE_SECONDS)
    writer.close()
    await writer.wait_closed()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sentences: Sequence[str]) -> int:
    """Send sentences; return the status of the answer."""
    body = json.dumps({"text": sentences}).encode()
    writer.write(f"POST /v1/translate HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
    await reader.readexactly(int(headers["content-length"]))
    status = int(head[0].split()[1])
    if status in (429, 503) and "retry-after" not in headers:
        raise ValueError(f"{status} does not say when to try again")
    return status


async def overload(port: int, pid: int, requests: Requests, arguments: argparse.Namespace) -> dict[str, Any]:
    """Offer many times what the server can do; compare its memory before and after."""
    await load(port, requests, min(arguments.overload_clients, MAX_CLIENTS), 5)  # allocates what such a load needs once
    before = memory(pid)
    found = await load(port, requests, min(arguments.overload_clients, MAX_CLIENTS), arguments.seconds)
    return {**found.report(), "clients": arguments.overload_clients, "MiB_before": before, "MiB_after": memory(pid)}


async def with_bad_clients(
    port: int, pid: int, requests: Requests, seconds: float, hostile_clients: int, clients: int = CLIENTS
) -> dict[str, Any]:
    """Load the server while hostile clients attack it without a pause, each in all ways in turn."""
    sizes, began = list[dict[str, list[int]]](), dict[str, float]()
    watching = asyncio.ensure_future(_watch_memory(pid, sizes))
    attacking = asyncio.gather(*(hostile.take_turns(port, seconds, number, began) for number in range(hostile_clients)))
    found = await load(port, requests, clients, seconds)
    await attacking
    watching.cancel()
    by_attack = {"p99_by_attack": found.p99_from(began)} if hostile_clients == 1 else {}
    return {**found.report(), **by_attack, "MiB_by_minute": [*sizes, memory(pid)]}


async def _watch_memory(pid: int, sizes: list[dict[str, list[int]]]) -> None:
    while True:
        sizes.append(memory(pid))
        await asyncio.sleep(MINUTE)


def memory(pid: int) -> dict[str, list[int]]:
    """Return the resident memory of the server and of each process of its models in MiB."""
    groups = {"server": [pid], "models": processes.model_processes(pid)}
    return {who: [processes.memory(each) >> 20 for each in group] for who, group in groups.items()}


def cpu_seconds(pid: int) -> dict[str, float]:
    """Return the CPU time that the server, its models and this program have used."""
    models = sum(map(processes.cpu_seconds, processes.model_processes(pid)))
    return {"server": processes.cpu_seconds(pid), "models": models, "clients": time.process_time()}


def _arguments() -> argparse.Namespace:
    assert __doc__
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"{', '.join(PARTS)} (all)")
    parser.add_argument("--model", type=existing_folder, required=True, help="folder of a run")
    parser.add_argument("--text", required=True, help="file with a sentence per line")
    parser.add_argument("--seconds", type=positive, default=60, help="seconds per measurement (60)")
    parser.add_argument("--threads", type=at_least(0), default=0, help="threads of the model; 0 is one per core")
    parser.add_argument("--setting", action="append", default=[], help="of both, such as engine=ctranslate2")
    parser.add_argument("--request-sentences", type=at_least(1), default=1, help="sentences per request (1)")
    parser.add_argument("--overload-clients", type=at_least(1), default=900, help="clients that are too many (900)")
    parser.add_argument(
        "--clients", type=at_least(1), default=CLIENTS, help=f"clients of load and bad clients ({CLIENTS})"
    )
    parser.add_argument("--hostile", type=at_least(0), default=HOSTILE, help=f"hostile clients at a time ({HOSTILE})")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts or PARTS
    arguments.seconds = min(arguments.seconds, MAX_SECONDS)
    return arguments


if __name__ == "__main__":
    run_tool(main, __file__)
