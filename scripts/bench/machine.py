"""Measure what a user can expect of nmt on this machine."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import open_corpus, shape_overrides
from engines import Bench, print_table, required
from train import tokens_per_second

from nmt.errors import UserError

BATCH_TOKENS = 1024
BATCHES = (1, 32)
"""Sentences per batch of the translation."""
SENTENCES = 200
HEAD = (
    "machine", "precision", "matrix products, GFLOP/s", "training, tokens/s", "the demo, minutes",
    "its BLEU, test and unseen", *(f"translation in batches of {each}, sentences/s" for each in BATCHES),
)  # fmt: skip


def measure(options: argparse.Namespace, bench: Bench) -> None:
    """Run the demo, then measure the training of a small model and translation; print a row."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        overrides = [f"paths.data={folder / 'data'}", f"paths.outputs={folder / 'outputs'}"]
        minutes = _demo(overrides, bench)
        run = folder / "outputs" / "demo"
        scores = [json.loads((run / "eval" / f"{each}.json").read_text())["bleu"] for each in ("test", "unseen")]
        corpus = open_corpus([*overrides, *shape_overrides("small", BATCH_TOKENS)], bench.threads)
        training = required(bench.run("ours", corpus.job("speed", "auto", seconds=options.seconds, warmup=5)))
        precision = training["precision"]
        peak = required(bench.run("peak", {"kind": "peak", "precision": precision, "device": "cpu"}))
        search = {"beam": 4, "rounds": 1, "batches": BATCHES, "run": str(run), "references": [], "alone": True}
        lines = corpus.lines("test", corpus.config.data.source_lang)[:SENTENCES]
        job = {"kind": "translate", "precision": precision, "lines": lines, **search}
        speeds = [each["median"] for each in required(bench.run("interface", job))["rows"]]
    rates = (f"{peak['flops'] / 1e9:,.0f}", f"{tokens_per_second(training):,.0f}", f"{minutes:.1f}")
    bleu = ", ".join(f"{each['score']:.1f}" for each in scores)
    print_table(HEAD, [(bench.machine, precision, *rates, bleu, *(f"{each:,.1f}" for each in speeds))])


def _demo(overrides: list[str], bench: Bench) -> float:
    """Run the demo as a user would; return its minutes."""
    print("running the demo, which takes a few minutes", file=sys.stderr)
    command = [sys.executable, "-m", "nmt", "demo", *overrides, f"runtime.threads={bench.threads}"]
    began = time.monotonic()
    done = subprocess.run(command, env=bench.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"the demo failed: {lines[-1] if lines else done.returncode}")
    return (time.monotonic() - began) / 60
