"""Break down the time of nmt's training step, and measure its data pipeline and its scaling over processes."""

import argparse
from pathlib import Path
from typing import Any

from corpus import open_corpus, shape_overrides
from curves import with_ours
from engines import Bench, required
from tables import table


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Break down the step in each precision, and time the data pipeline alone."""
    corpus = open_corpus([*options.overrides, *shape_overrides(options.shape, options.batch_tokens)], bench.threads)
    times = {"seconds": options.seconds, "warmup": options.warmup}
    results = {}
    for precision in options.precisions:
        job = with_ours("ours", corpus.job("breakdown", precision, Path(), **times), options.ours)
        results[precision] = required(bench.run("profile", job))
        bench.print_title(f"{options.shape} in {precision}: {results[precision]['tokens_per_second']:,.0f} tokens/s")
        print(render(results[precision]))
    pipeline = required(bench.run("profile", corpus.job("pipeline", "fp32", Path(), **times)))
    rate = (pipeline["source_tokens"] + pipeline["target_tokens"]) / pipeline["seconds"]
    bench.print_title(
        f"data pipeline alone: {pipeline['updates'] / pipeline['seconds']:,.0f} batches/s, {rate:,.0f} tokens/s"
    )
    return {"breakdown": results, "pipeline": pipeline}


def render(result: dict[str, Any]) -> str:
    """Return a table of the phases of a step, and one of its slowest operators."""
    total = sum(result["milliseconds"].values())
    phases = [[name, f"{time:.1f}", f"{time / total:.1%}"] for name, time in result["milliseconds"].items()]
    operators = [[each["name"], f"{each['calls']:.0f}", f"{each['share']:.1%}"] for each in result["operators"]]
    return "\n".join(
        [
            table(("phase", "ms per step", "share"), phases),
            "",
            table(("operator", "calls per step", "share"), operators),
        ]
    )


def scaling(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Compare one and two processes of one thread each with one process of two threads, on the same global batch."""
    overrides = [*options.overrides, *shape_overrides(options.shape, options.batch_tokens)]
    results, rows = [], []
    for processes, threads in ((1, 1), (2, 1), (1, 2)):
        thread_bench = bench._replace(threads=threads)
        corpus = open_corpus([*overrides, f"runtime.precision={options.precision}"], threads)
        updates = {"updates": options.updates, "warmup_updates": max(2, options.updates // 10)}
        job = with_ours("ours", corpus.job("processes", options.precision, Path(), **updates), options.ours)
        result = required(thread_bench.run("profile", job, processes=processes))
        rate = result["tokens"] / result["seconds"]
        results.append({"processes": processes, "threads": threads, "tokens_per_second": rate})
        ratio = rate / results[0]["tokens_per_second"]
        rows.append([f"{processes} of {threads} thread{'s' * (threads > 1)}", f"{rate:,.0f}", f"{ratio:.2f}"])
    print(f"\n{options.shape} in {options.precision}, {options.batch_tokens:,} target tokens per batch")
    print(table(("processes", "tokens/s", "compared with the first"), rows))
    return {"scaling": results}
