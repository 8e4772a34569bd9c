"""Kill processes of a server, and measure how long it takes until requests are answered again."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from load_test import worst_cases
from shared import processes

SETTLE_SECONDS = 10
"""Seconds in which all processes of a model are there again."""
LOOK_SECONDS = 0.02
"""Seconds between two looks."""


async def measure(start: Callable[[int], AbstractAsyncContextManager[tuple[int, int]]]) -> dict[str, float]:
    """Return the seconds after each kill; `start` starts a server on a port, and 0 is any free one."""
    found: dict[str, float] = {}
    async with start(0) as (port, pid):
        await _seconds_until_answered(port)
        kill(processes.model_processes(pid)[:1])
        found["one process of the model"] = await _seconds_until_answered(port)
        await asyncio.sleep(SETTLE_SECONDS)
        kill(processes.model_processes(pid))
        found["all processes of the model"] = await _seconds_until_answered(port)
        await asyncio.sleep(SETTLE_SECONDS)
        models = processes.model_processes(pid)
        kill([pid])
        found["the server, until its models have ended"] = await _seconds_until_ended(models)
    began = time.monotonic()
    async with start(port):
        await _seconds_until_answered(port)
        found["the server, until a new one answers"] = round(time.monotonic() - began, 2)
    return found


def kill(pids: Sequence[int]) -> None:
    """Kill processes."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


async def _seconds_until_answered(port: int) -> float:
    began = time.monotonic()
    while (await worst_cases.ask(port, "/v1/translate", {"text": "a"}))[0] != 200:
        await asyncio.sleep(LOOK_SECONDS)
    return round(time.monotonic() - began, 2)


async def _seconds_until_ended(pids: Sequence[int]) -> float:
    began = time.monotonic()
    while any(processes.is_alive(pid) for pid in pids):
        await asyncio.sleep(LOOK_SECONDS)
    return round(time.monotonic() - began, 2)
