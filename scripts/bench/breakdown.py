"""Where the time of our step goes; what the data pipeline delivers by itself; what a second process brings."""

import argparse
from pathlib import Path
from typing import Any

from corpus import open_corpus, shape_overrides
from curves import with_ours
from engines import Bench
from tables import table

from nmt.errors import UserError


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Break the step down, and time the data pipeline."""
    corpus = open_corpus([*options.overrides, *shape_overrides(options.shape, options.batch_tokens)], bench.threads)
    times = {"seconds": options.seconds, "warmup": options.warmup}
    found = {}
    for precision in options.precisions:
        job = with_ours("ours", corpus.job("breakdown", precision, Path(), **times), options.ours)
        found[precision] = _certain(bench.run("parts", job))
        print(f"\n{options.shape} in {precision}: {found[precision]['tokens_per_second']:,.0f} tokens/s\n")
        print(render(found[precision]))
    pipeline = _certain(bench.run("parts", corpus.job("pipeline", "fp32", Path(), **times)))
    rate = (pipeline["source_tokens"] + pipeline["target_tokens"]) / pipeline["seconds"]
    print(f"\ndata pipeline alone: {pipeline['updates'] / pipeline['seconds']:,.0f} batches/s, {rate:,.0f} tokens/s")
    return {"breakdown": found, "pipeline": pipeline}


def render(found: dict[str, Any]) -> str:
    """Parts of a step, then operators."""
    whole = sum(found["milliseconds"].values())
    parts = [[name, f"{each:.1f}", f"{each / whole:.1%}"] for name, each in found["milliseconds"].items()]
    operators = [[each["name"], f"{each['calls']:.0f}", f"{each['share']:.1%}"] for each in found["operators"]]
    return "\n".join(
        [table(("part", "ms a step", "share"), parts), "", table(("operator", "calls a step", "share"), operators)]
    )


def scaling(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """One and two processes of one thread each, against one process of two threads; the batch is the same."""
    words = [*options.overrides, *shape_overrides(options.shape, options.batch_tokens)]
    found, rows = [], []
    for processes, threads in ((1, 1), (2, 1), (1, 2)):
        here = bench._replace(threads=threads)
        corpus = open_corpus([*words, f"runtime.precision={options.precision}"], threads)
        updates = {"updates": options.updates, "warmup_updates": max(2, options.updates // 10)}
        job = with_ours("ours", corpus.job("processes", options.precision, Path(), **updates), options.ours)
        result = _certain(here.run("parts", job, processes=processes))
        rate = result["tokens"] / result["seconds"]
        found.append({"processes": processes, "threads": threads, "tokens_per_second": rate})
        ratio = rate / found[0]["tokens_per_second"]
        rows.append([f"{processes} of {threads} thread{'s' * (threads > 1)}", f"{rate:,.0f}", f"{ratio:.2f}"])
    print(f"\n{options.shape} in {options.precision}, {options.batch_tokens:,} target tokens a batch\n")
    print(table(("processes", "tokens/s", "to the first"), rows))
    return {"scaling": found}


def _certain(result: dict[str, Any]) -> dict[str, Any]:
    """A result that has to be there."""
    if "refused" in result:
        raise UserError(result["refused"])
    return result
