"""Translating in batches of sentences of like length, timed alike for all engines."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from protocol import Job, Result

SAMPLE = 64
"""Sentences of a batch, or a sentence each of as many batches, translated before the clock starts."""
LONGER = 50
"""Word pieces that a translation has at most besides as many as its source."""

Sentences = list[Any]
Block = Callable[[Sentences], Sentences]
"""Translates a batch."""
Blocks = Callable[[list[Sentences]], list[Sentences]]
"""Translates several."""


def in_batches(
    job: Job, block: Block, run_in_threads: Blocks | None = None, sources: Sentences | None = None
) -> Result:
    """Translate the job's sentences (ids without marks, or what an engine takes instead of them), in order.

    Batches hold `job["batch"]` sentences, longest first. Where an engine can also translate batches side by side, with
    a thread for each, a sample decides which way is the faster. Engines that know one limit for a whole batch go on
    for longer where a sentence repeats itself without end; what is too long is cut.
    """
    sources = job["sources"] if sources is None else sources
    order = sorted(range(len(sources)), key=lambda index: -len(job["sources"][index]))
    batches = [order[start : start + job["batch"]] for start in range(0, len(order), job["batch"])]
    blocks = [[sources[index] for index in batch] for batch in batches]
    ways: dict[str, Blocks] = {"one after the other": lambda several: [block(each) for each in several]}
    if run_in_threads and job["threads"] > 1:
        ways["side by side"] = run_in_threads
    way = _faster(ways, _sample(blocks, job["threads"]))
    began, cpu_began = time.perf_counter(), time.process_time()
    found = ways[way](blocks)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    results: Sentences = [None] * len(sources)
    for batch, translated in zip(batches, found, strict=True):
        for index, pieces in zip(batch, translated, strict=True):
            results[index] = pieces[: len(job["sources"][index]) + LONGER]
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "batches": way, "hypotheses": results}


def in_threads(job: Job, block: Block) -> Blocks:
    """Batches side by side, for engines that are Python and torch alone."""

    def blocks(several: list[Sentences]) -> list[Sentences]:
        with ThreadPoolExecutor(job["threads"], initializer=partial(torch.set_num_threads, 1)) as threads:
            return list(threads.map(block, several))

    return blocks


def _sample(blocks: list[Sentences], threads: int) -> list[Sentences]:
    """Some batches from the middle, or as much as is enough of them, for each thread the same."""
    count = threads * max(1, SAMPLE // (threads * max(map(len, blocks))))
    middle = max(0, (len(blocks) - count) // 2)
    return [block[:SAMPLE] for block in blocks[middle : middle + count]]


def _faster(ways: dict[str, Blocks], sample: list[Sentences]) -> str:
    """Which way the sample takes the least time, once it has been translated in each."""
    seconds = {}
    for name, way in ways.items():
        way(sample)
        if len(ways) > 1:
            began = time.perf_counter()
            way(sample)
            seconds[name] = time.perf_counter() - began
    return min(ways, key=lambda name: seconds.get(name, 0.0))
