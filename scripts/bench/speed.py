"""Training speed: all engines in turn, round by round, each for a short stretch."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from corpus import Corpus, open_corpus, shape_overrides, write_text
from engines import ENGINES, Bench
from tables import table

from nmt.estimate.parameters import count_parameters, training_flops

TRAINERS = ("ours", "huggingface", "eole", "joeynmt", "marian")
Case = tuple[str, str, bool]
"""Engine, precision, and whether the allocator keeps large buffers."""


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Measure every shape, and print a table of each."""
    shapes = {}
    for shape in options.shapes:
        corpus = open_corpus([*options.overrides, *shape_overrides(shape, options.batch_tokens)], bench.threads)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            write_text(corpus, Path(folder))
            rows = _rounds(options, bench, corpus, Path(folder))
        shapes[shape] = rows
        for kept in (False, True) if options.allocator else (False,):
            print(f"\n{_title(shape, options)}{', the allocator told to keep large buffers' if kept else ''}\n")
            print(render([row for row in rows if row["kept"] == kept]))
    return {"shapes": shapes}


def _title(shape: str, options: argparse.Namespace) -> str:
    return f"Training, {shape}, {options.batch_tokens:,} target tokens a batch, {options.threads} threads"


def _rounds(options: argparse.Namespace, bench: Bench, corpus: Corpus, text: Path) -> list[dict[str, Any]]:
    cases = [
        (name, precision, kept)
        for kept in ((False, True) if options.allocator else (False,))
        for name in options.engines
        for precision in ENGINES[name].precisions
        if precision in options.precisions
    ]
    found: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    peaks: dict[str, list[float]] = {precision: [] for precision in options.precisions}
    times = {"seconds": options.seconds, "warmup": options.warmup}
    for _ in range(options.rounds):
        for precision in options.precisions:
            peaks[precision].append(bench.run("peak", {"kind": "peak", "precision": precision})["flops"])
        for name, precision, kept in cases:
            so_far = found[name, precision, kept]
            if so_far and "refused" in so_far[-1]:
                continue  # it will not do better in the next round
            mine = [*options.ours, f"runtime.precision={precision}"] if name == "ours" else []
            job = corpus.job("speed", precision, text, **times)
            so_far.append(bench.run(name, {**job, "overrides": [*job["overrides"], *mine]}, kept=kept))
    return [_row(case, results, peaks, corpus) for case, results in found.items()]


def _row(
    case: Case, results: Sequence[dict[str, Any]], peaks: dict[str, list[float]], corpus: Corpus
) -> dict[str, Any]:
    name, precision, kept = case
    row: dict[str, Any] = {"engine": name, "precision": precision, "kept": kept}
    if "refused" in results[-1]:
        return {**row, "refused": results[-1]["refused"]}
    rates = [(each["source_tokens"] + each["target_tokens"]) / each["seconds"] for each in results]
    flops = [_flops(corpus, each) / each["seconds"] for each in results]
    peak = median(peaks[precision])
    return {
        **row,
        "tokens_per_second": median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "peak_flops": peak,
        "share_of_peak": median(flops) / peak,
        "memory": max(each["memory"] for each in results),
        "rounds": list(results),
    }


def _flops(corpus: Corpus, result: dict[str, Any]) -> int:
    """What the model itself needs for the tokens of a stretch, whatever the engine computes beside."""
    model, words = corpus.config.model, corpus.tokenizer.target_size
    size = count_parameters(model, words, words)
    return training_flops(model, size, words * model.d_model, result["source_tokens"], result["target_tokens"])


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The table, and below it how ours compares with the best of the others."""
    head = ("engine", "precision", "tokens/s", "lowest to highest", "of the peak", "memory")
    lines = [table(head, [_cells(row) for row in rows])]
    lines += [f"\n{row['engine']} {row['precision']}: {row['refused']}" for row in rows if "refused" in row]
    peaks = {row["precision"]: row["peak_flops"] for row in rows if "peak_flops" in row}
    lines += [f"\npeak of a matrix product in {name}: {flops / 1e9:,.0f} GFLOP/s" for name, flops in peaks.items()]
    ours, peer = (best([row for row in rows if (row["engine"] == "ours") == mine]) for mine in (True, False))
    if ours and peer:
        ratio = ours["tokens_per_second"] / peer["tokens_per_second"]
        lines.append(
            f"\nours in {ours['precision']} is {ratio:.2f} times as fast as the best peer, "
            f"{ENGINES[peer['engine']].title} in {peer['precision']}"
        )
    return "\n".join(lines)


def best(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The fastest row of those that were measured."""
    return max((row for row in rows if "refused" not in row), key=lambda row: row["tokens_per_second"], default=None)


def _cells(row: dict[str, Any]) -> list[str]:
    first = [ENGINES[row["engine"]].title, row["precision"]]
    if "refused" in row:
        return [*first, "none", "", "", ""]
    return [
        *first,
        f"{row['tokens_per_second']:,.0f}",
        f"{row['lowest']:,.0f} to {row['highest']:,.0f}",
        f"{row['share_of_peak']:.1%}",
        f"{row['memory'] / 1e9:.2f} GB",
    ]
