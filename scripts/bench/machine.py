"""Measure what a user can expect of nmt on this machine: a row of the table by kind of machine in docs/results.md."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import Corpus, open_corpus, shape_overrides
from engines import CPUS, Bench, required
from tables import table

from nmt.compute.cores import cpu_description
from nmt.errors import UserError

BATCH_TOKENS = 1024
BATCHES = (1, 32)
"""Sentences per batch of the translation."""
SENTENCES = 200
HEAD = (
    "machine",
    "precision",
    "matrix products, GFLOP/s",
    "training, tokens/s",
    "the demo, minutes",
    "its BLEU, test and unseen",
    *(f"translation in batches of {batch}, sentences/s" for batch in BATCHES),
)


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Run the demo, then measure the training of a small model and translation; print the row."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        paths = [f"paths.data={folder / 'data'}", f"paths.outputs={folder / 'outputs'}"]
        minutes = _demo([*options.overrides, *paths], bench)
        bench.note({"kind": "the demo", "minutes": minutes})
        corpus = open_corpus([*options.overrides, *paths, *shape_overrides("small", BATCH_TOKENS)], bench.threads)
        training = required(bench.run("ours", corpus.job("speed", "auto", folder, seconds=options.seconds, warmup=5)))
        precision = training["precision"]
        result = {
            "machine": cpu_description() + (f", limited to {bench.cpu}" if CPUS[bench.cpu] else ""),
            "threads": bench.threads,
            "precision": precision,
            "peak_flops": required(bench.run("peak", {"kind": "peak", "precision": precision, "device": "cpu"}))[
                "flops"
            ],
            "tokens_per_second": (training["source_tokens"] + training["target_tokens"]) / training["seconds"],
            "demo_minutes": minutes,
            "demo_bleu": [_bleu(folder / "outputs" / "demo" / "eval" / f"{each}.json") for each in ("test", "unseen")],
            "sentences_per_second": [_translation(bench, corpus, folder, precision, batch) for batch in BATCHES],
        }
    print(f"\n{table(HEAD, [_cells(result)])}")
    return result


def _demo(overrides: list[str], bench: Bench) -> float:
    """Run the demo as a user would; return its minutes."""
    print("running the demo, which takes a few minutes", file=sys.stderr)
    command = [sys.executable, "-m", "nmt", "demo", *overrides, f"runtime.threads={bench.threads}"]
    began = time.monotonic()
    done = subprocess.run(command, env=bench.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the demo failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return (time.monotonic() - began) / 60


def _translation(bench: Bench, corpus: Corpus, folder: Path, precision: str, batch: int) -> float:
    """Return the sentences of the demo's test set per second, with the demo's model and a beam of 4."""
    test = corpus.store("test")
    job = {
        **corpus.job("translate", precision, folder),
        "checkpoint": str(folder / "outputs" / "demo" / "checkpoints" / "averaged"),
        "sources": [test.source(index).tolist() for index in range(min(SENTENCES, len(test)))],
        "beam": 4,
        "alpha": 0.6,
        "batch": batch,
    }
    result = required(bench.run("ours", job))
    return len(job["sources"]) / float(result["seconds"])


def _bleu(path: Path) -> float:
    return float(json.loads(path.read_text(encoding="utf-8"))["bleu"]["score"])


def _cells(result: dict[str, Any]) -> list[str]:
    return [
        f"{result['machine']}, {result['threads']} threads",
        result["precision"],
        f"{result['peak_flops'] / 1e9:,.0f}",
        f"{result['tokens_per_second']:,.0f}",
        f"{result['demo_minutes']:.1f}",
        ", ".join(f"{score:.1f}" for score in result["demo_bleu"]),
        *(f"{rate:,.1f}" for rate in result["sentences_per_second"]),
    ]
