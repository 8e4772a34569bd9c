"""Translating in batches of sentences of like length, timed alike for all engines."""

import time
from collections.abc import Callable
from typing import Any

from protocol import Job, Result

WARM_UP = 64
"""Sentences translated before the clock starts."""
LONGER = 50
"""Word pieces that a translation has at most besides as many as its source."""

Sentences = list[Any]


def in_batches(job: Job, block: Callable[[Sentences], Sentences], sources: Sentences | None = None) -> Result:
    """Translate the job's sentences (ids without marks, or what an engine takes instead of them), in order.

    `block` translates one batch. Batches hold `job["batch"]` sentences, longest first. Engines that know one limit
    for a whole batch go on for longer where a sentence repeats itself without end; what is too long is cut.
    """
    sources = job["sources"] if sources is None else sources
    order = sorted(range(len(sources)), key=lambda index: -len(job["sources"][index]))
    batches = [order[start : start + job["batch"]] for start in range(0, len(order), job["batch"])]
    for batch in batches[len(batches) // 2 :][: max(1, WARM_UP // job["batch"])]:
        block([sources[index] for index in batch])
    results: Sentences = [None] * len(sources)
    began, cpu_began = time.perf_counter(), time.process_time()
    for batch in batches:
        for index, found in zip(batch, block([sources[index] for index in batch]), strict=True):
            results[index] = found[: len(job["sources"][index]) + LONGER]
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu_began,
        "hypotheses": results,
    }
