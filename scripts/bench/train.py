"""Compare training speed: in each round every engine trains for a short time."""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from corpus import Corpus, open_corpus, shape_overrides, write_text
from engines import ENGINES, Bench, print_table

from nmt.estimate.parameters import count_parameters, training_flops

TRAINERS = ("ours", "huggingface", "eole")
HEAD = ("engine", "precision", "tokens/s", "lowest to highest", "fraction of the peak", "memory")


def measure(options: argparse.Namespace, bench: Bench) -> None:
    """Measure every shape, and print a table for each."""
    for shape in options.shapes:
        overrides = [*options.overrides, *shape_overrides(shape, options.batch_tokens)]
        corpus = open_corpus(overrides, bench.threads, options.device)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            write_text(corpus, Path(folder))
            results = _rounds(options, bench, corpus, Path(folder))
        print(f"\nTraining on {options.device}, {shape}, {options.batch_tokens:,} target tokens per batch")
        print(f"{bench.machine}\n")
        print_results(results, corpus)


Results = dict[tuple[str, str], list[dict[str, Any]]]
"""The results of all rounds by engine and precision; the engine `peak` is the matrix product."""


def _rounds(options: argparse.Namespace, bench: Bench, corpus: Corpus, text: Path) -> Results:
    results: Results = {(name, each): [] for each in options.precisions for name in ("peak", *options.engines)}
    for number in range(options.rounds):
        for (name, precision), rounds in results.items():
            if rounds and "refused" in rounds[-1]:
                continue  # it would also refuse in this round
            times = {"seconds": options.seconds, "warmup": options.warmup, "round": number}
            job = corpus.job("peak" if name == "peak" else "speed", precision, **times)
            if name == "ours":
                job["overrides"] += options.ours
            rounds.append(bench.run(name, job, text))
    return results


def print_results(results: Results, corpus: Corpus) -> None:
    """Print a table, and the reason of each engine without a result."""
    rows = []
    for (name, precision), rounds in results.items():
        if name == "peak" or "refused" in rounds[-1]:
            continue
        speeds = list(map(tokens_per_second, rounds))
        peak = median(each["flops"] for each in results["peak", precision])
        share = median(_flops(corpus, each) / each["seconds"] for each in rounds) / peak
        memory = max(each["memory"] for each in rounds) / 1e9
        span = f"{min(speeds):,.0f} to {max(speeds):,.0f}"
        rows.append(
            (ENGINES[name].title, precision, f"{median(speeds):,.0f}", span, f"{share:.1%}", f"{memory:.2f} GB")
        )
    print_table(HEAD, rows)
    for (name, precision), rounds in results.items():
        if "refused" in rounds[-1]:
            print(f"\n{ENGINES[name].title} {precision}: {rounds[-1]['refused']}")


def tokens_per_second(result: dict[str, Any]) -> float:
    """Return the source and target tokens per second of a measurement."""
    return float((result["source_tokens"] + result["target_tokens"]) / result["seconds"])


def _flops(corpus: Corpus, result: dict[str, Any]) -> int:
    """Return the FLOPs of the model for the measured tokens, without any other computation of the engine."""
    model, vocabulary = corpus.config.model, corpus.tokenizer.target_size
    size = count_parameters(model, vocabulary, vocabulary)
    return training_flops(size, vocabulary * model.d_model, result["source_tokens"], result["target_tokens"])
