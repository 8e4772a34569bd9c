"""Time translation in batches of sentences of similar length, in the same way for all engines."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from protocol import Job, RefusedError, Result

SAMPLE_SENTENCES = 64
"""Sentences to translate before the measurement: part of one batch, or several smaller batches."""
MAX_EXTRA_PIECES = 50
"""Word pieces by which a translation may exceed the length of its source."""

Sentences = list[Any]
TranslateBatch = Callable[[Sentences], Sentences]
TranslateBatches = Callable[[list[Sentences]], list[Sentences]]


def in_batches(
    job: Job,
    translate: TranslateBatch,
    translate_parallel: TranslateBatches | None = None,
    sources: Sentences | None = None,
) -> Result:
    """Translate and time the job's sentences; return the translations in order.

    Batches hold `job["batch"]` sentences, longest first. If the engine can also translate batches in parallel, with one
    thread per batch, a sample decides which strategy is faster. Some engines have one length limit per batch, so
    a translation that repeats itself becomes too long; the result is cut to the limit of its own sentence.

    Args:
        job: The job, with the source ids without marks.
        translate: Translates one batch.
        translate_parallel: Translates several batches in parallel.
        sources: The sentences in the engine's own format, in place of the ids.
    """
    sources = job["sources"] if sources is None else sources
    order = sorted(range(len(sources)), key=lambda index: -len(job["sources"][index]))
    batches = [order[start : start + job["batch"]] for start in range(0, len(order), job["batch"])]
    inputs = [[sources[index] for index in batch] for batch in batches]
    strategies: dict[str, TranslateBatches] = {"sequential": lambda several: [translate(each) for each in several]}
    if translate_parallel and job["threads"] > 1:
        strategies["parallel"] = translate_parallel
    strategy = _fastest(strategies, _sample(inputs, job["threads"]))
    began, cpu_began = time.perf_counter(), time.process_time()
    translated = strategies[strategy](inputs)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    results: Sentences = [None] * len(sources)
    for batch, translations in zip(batches, translated, strict=True):
        for index, pieces in zip(batch, translations, strict=True):
            results[index] = pieces[: len(job["sources"][index]) + MAX_EXTRA_PIECES]
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "batches": strategy, "hypotheses": results}


def translated_controls(job: Job, arguments: Mapping[str, str | dict[str, Any]]) -> dict[str, Any]:
    """Return the job's controls of the search as arguments of the engine; refuse those that it lacks.

    `arguments` has the name of the argument for each control, or the arguments themselves.
    """
    lacking = [*(name for name in job["controls"] if name not in arguments), *["terms"][: len(job["terms"])]]
    if lacking:
        raise RefusedError(f"it has no {', '.join(lacking)}")
    translated: dict[str, Any] = {}
    for name, value in job["controls"].items():
        argument = arguments[name]
        translated |= {argument: value} if isinstance(argument, str) else argument
    return translated


def in_threads(job: Job, translate: TranslateBatch) -> TranslateBatches:
    """Return a function that translates batches in parallel Python threads, for engines built on PyTorch."""

    def translate_parallel(several: list[Sentences]) -> list[Sentences]:
        with ThreadPoolExecutor(job["threads"], initializer=partial(torch.set_num_threads, 1)) as threads:
            return list(threads.map(translate, several))

    return translate_parallel


def _sample(inputs: list[Sentences], threads: int) -> list[Sentences]:
    """Return some batches from the middle, cut to the size of the sample, the same number for each thread."""
    count = threads * max(1, SAMPLE_SENTENCES // (threads * max(map(len, inputs))))
    middle = max(0, (len(inputs) - count) // 2)
    return [batch[:SAMPLE_SENTENCES] for batch in inputs[middle : middle + count]]


def _fastest(strategies: dict[str, TranslateBatches], sample: list[Sentences]) -> str:
    """Warm up each strategy with the sample; return the name of the fastest."""
    seconds = {}
    for name, translate in strategies.items():
        translate(sample)
        if len(strategies) > 1:
            began = time.perf_counter()
            translate(sample)
            seconds[name] = time.perf_counter() - began
    return min(strategies, key=lambda name: seconds.get(name, 0.0))
