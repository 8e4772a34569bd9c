"""Compare training speed: in each round every engine trains for a short time."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from corpus import Corpus, open_corpus, shape_overrides, write_text
from engines import ENGINES, Bench
from tables import table

from nmt.compute.machine import device_name
from nmt.estimate.parameters import count_parameters, training_flops

TRAINERS = ("ours", "huggingface", "eole")
Case = tuple[str, str, bool]
"""Engine, precision, and whether glibc is tuned to keep large buffers."""


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Measure every shape, and print a table for each."""
    shapes = {}
    for shape in options.shapes:
        overrides = [*options.overrides, *shape_overrides(shape, options.batch_tokens)]
        corpus = open_corpus(overrides, bench.threads, options.device)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            write_text(corpus, Path(folder))
            rows = _rounds(options, bench, corpus, Path(folder))
        shapes[shape] = rows
        for tuned in (False, True) if options.allocator else (False,):
            bench.print_title(f"{_title(shape, options)}{', glibc tuned to keep large buffers' if tuned else ''}")
            print(render([row for row in rows if row["tuned"] == tuned]))
    return {"shapes": shapes}


def _title(shape: str, options: argparse.Namespace) -> str:
    where = f"{options.threads} threads" if options.device == "cpu" else device_name(torch.device(options.device))
    return f"Training, {shape}, {options.batch_tokens:,} target tokens per batch, {where}"


def _rounds(options: argparse.Namespace, bench: Bench, corpus: Corpus, text: Path) -> list[dict[str, Any]]:
    cases = [
        (name, precision, tuned)
        for tuned in ((False, True) if options.allocator else (False,))
        for name in options.engines
        for precision in ENGINES[name].precisions
        if precision in options.precisions
    ]
    results: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    peaks: dict[str, list[float]] = {precision: [] for precision in options.precisions}
    times = {"seconds": options.seconds, "warmup": options.warmup}
    for _ in range(options.rounds):
        for precision in options.precisions:
            peaks[precision].append(
                bench.run("peak", {"kind": "peak", "precision": precision, "device": options.device})["flops"]
            )
        for name, precision, tuned in cases:
            rounds = results[name, precision, tuned]
            if rounds and "refused" in rounds[-1]:
                continue  # it would also refuse in this round
            extra = [*options.ours, f"runtime.precision={precision}"] if name == "ours" else []
            job = corpus.job("speed", precision, text, **times)
            rounds.append(bench.run(name, {**job, "overrides": [*job["overrides"], *extra]}, tuned=tuned))
    return [_row(case, rounds, peaks, corpus) for case, rounds in results.items()]


def _row(case: Case, rounds: Sequence[dict[str, Any]], peaks: dict[str, list[float]], corpus: Corpus) -> dict[str, Any]:
    name, precision, tuned = case
    row: dict[str, Any] = {"engine": name, "precision": precision, "tuned": tuned}
    if "refused" in rounds[-1]:
        return {**row, "refused": rounds[-1]["refused"]}
    rates = [(each["source_tokens"] + each["target_tokens"]) / each["seconds"] for each in rounds]
    flops = [_flops(corpus, each) / each["seconds"] for each in rounds]
    peak = median(peaks[precision])
    return {
        **row,
        "tokens_per_second": median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "peak_flops": peak,
        "share_of_peak": median(flops) / peak,
        "memory": max(each["memory"] for each in rounds),
        "rounds": list(rounds),
    }


def _flops(corpus: Corpus, result: dict[str, Any]) -> int:
    """Return the FLOPs of the model for the measured tokens, without any other computation of the engine."""
    model, vocabulary = corpus.config.model, corpus.tokenizer.target_size
    size = count_parameters(model, vocabulary, vocabulary)
    return training_flops(size, vocabulary * model.d_model, result["source_tokens"], result["target_tokens"])


def render(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table, and below it the speed of nmt compared with the fastest peer."""
    head = ("engine", "precision", "tokens/s", "lowest to highest", "fraction of the peak", "memory")
    lines = [table(head, [_cells(row) for row in rows])]
    lines += [f"\n{row['engine']} {row['precision']}: {row['refused']}" for row in rows if "refused" in row]
    peaks = {row["precision"]: row["peak_flops"] for row in rows if "peak_flops" in row}
    lines += [f"\npeak of a matrix product in {name}: {flops / 1e9:,.0f} GFLOP/s" for name, flops in peaks.items()]
    ours, peer = (fastest([row for row in rows if (row["engine"] == "ours") == is_ours]) for is_ours in (True, False))
    if ours and peer:
        ratio = ours["tokens_per_second"] / peer["tokens_per_second"]
        lines.append(
            f"\nnmt in {ours['precision']} is {ratio:.2f} times as fast as the fastest peer, "
            f"{ENGINES[peer['engine']].title} in {peer['precision']}"
        )
    return "\n".join(lines)


def fastest(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the fastest of the rows that have a result, or None."""
    return max((row for row in rows if "refused" not in row), key=lambda row: row["tokens_per_second"], default=None)


def _cells(row: dict[str, Any]) -> list[str]:
    first = [ENGINES[row["engine"]].title, row["precision"]]
    if "refused" in row:
        return [*first, "no result", "", "", ""]
    return [
        *first,
        f"{row['tokens_per_second']:,.0f}",
        f"{row['lowest']:,.0f} to {row['highest']:,.0f}",
        f"{row['share_of_peak']:.1%}",
        f"{row['memory'] / 1e9:.2f} GB",
    ]
