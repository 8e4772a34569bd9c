"""Compare learning curves: the development loss after the same batches, with the same schedule."""

import argparse
from pathlib import Path
from typing import Any

from corpus import open_corpus, shape_overrides
from engines import ENGINES, Bench
from tables import table

CURVES = ("ours", "huggingface")


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Train each engine for the same number of updates, and print the losses."""
    schedule = [
        f"training.schedule={options.schedule}",
        f"training.learning_rate={options.rate}",
        f"training.warmup_steps={options.warmup_steps}",
        f"training.steps={options.updates}",
    ]
    overrides = [*options.overrides, *shape_overrides(options.shape, options.batch_tokens), *schedule]
    corpus = open_corpus(overrides, bench.threads)
    results = {}
    for name in options.engines:
        for precision in options.precisions:
            job = corpus.job("curve", precision, Path(), updates=options.updates, every=options.every)
            results[f"{ENGINES[name].title} {precision}"] = bench.run(name, with_ours(name, job, options.ours))
    bench.print_title(f"Development loss per target token, {options.shape}, batches of {options.batch_tokens:,} tokens")
    print(render(results))
    return {"curves": results}


def with_ours(name: str, job: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Add settings to the job if it is for nmt."""
    return {**job, "overrides": [*job["overrides"], *settings]} if name == "ours" else job


def render(results: dict[str, Any]) -> str:
    """Return a table with a row per evaluation and a column per curve."""
    curves = {name: result["points"] for name, result in results.items() if "refused" not in result}
    lines = [f"{name}: {result['refused']}" for name, result in results.items() if "refused" in result]
    if not curves:
        return "\n".join(lines)
    rows = [
        [f"{points[0]['tokens']:,}", f"{points[0]['updates']:,}", *(f"{point['loss']:.4f}" for point in points)]
        for points in zip(*curves.values(), strict=False)
    ]
    seconds = [f"{points[-1]['seconds']:,.0f} s" for points in curves.values()]
    return "\n".join([table(("tokens", "updates", *curves), [*rows, ["time of the updates", "", *seconds]]), *lines])
