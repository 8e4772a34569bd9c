"""Compare nmt and Hugging Face's Marian after the same time of training: each trains, then translates the test set."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import open_corpus, shape_overrides
from engines import ENGINES, ROOT, Bench, print_table, required
from sacrebleu.metrics.bleu import BLEU

from nmt.errors import UserError
from nmt.storage.files import read_json

TRAINERS = ("ours", "huggingface")
RECIPE = ("training.schedule=cosine", "training.warmup_steps=400", "training.steps=100000")
"""The peer's schedule follows the time, as ours does, so that it uses all of its minutes."""
HEAD = ("engine", "precision", "updates", "minutes", "sacreBLEU")


def measure(options: argparse.Namespace, bench: Bench) -> None:
    """Train and score one engine after the other, and print the scores."""
    rows = []
    for name in options.engines:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            found = _nmt(options, bench, Path(folder)) if name == "ours" else _peer(options, bench)
        figures = (f"{found['updates']:,}", f"{found['seconds'] / 60:.1f}", f"{found['bleu']:.2f}")
        rows.append((ENGINES[name].title, options.precision, *figures))
    print(f"\n{options.minutes:g} minutes of training, beam {options.beam}\n{bench.machine}\n")
    print_table(HEAD, rows)


def _nmt(options: argparse.Namespace, bench: Bench, folder: Path) -> dict[str, Any]:
    """Train, average and score by the command line, with the settings of the experiment and of `--ours`."""
    settings = [
        *options.overrides, f"training.max_training_minutes={options.minutes}", f"runtime.threads={bench.threads}",
        f"runtime.precision={options.precision}", "runtime.device=cpu", f"decoding.beam={options.beam}",
        "evaluation.splits=[test]", "name=minutes", f"paths.outputs={folder}", *options.ours,
    ]  # fmt: skip
    seconds = []
    for stage in ("train", "average", "eval"):
        began = time.perf_counter()
        command = [sys.executable, "-m", "nmt", stage, *settings]
        if subprocess.run(command, cwd=ROOT, env=bench.environment(), stdout=sys.stderr, check=False).returncode:
            raise UserError(f"nmt {stage} failed: see its message above")
        seconds.append(time.perf_counter() - began)
    updates = max((folder / "minutes" / "checkpoints").glob("step-*")).name.removeprefix("step-")
    bleu = read_json(folder / "minutes" / "eval" / "test.json")["bleu"]["score"]
    return {"updates": int(updates), "seconds": seconds[0], "bleu": bleu}


def _peer(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Train and translate with the peer's driver, and score the translations."""
    shape = shape_overrides(options.shape, options.batch_tokens)
    recipe = [*RECIPE, f"training.learning_rate={options.rate}", f"training.max_training_minutes={options.minutes}"]
    corpus = open_corpus([*options.overrides, *shape, *recipe], bench.threads)
    test = corpus.store("test")
    sources = [test.source(index).tolist() for index in range(len(test))]
    job = corpus.job("minutes", options.precision, minutes=options.minutes, sources=sources, beam=options.beam)
    found = required(bench._replace(timeout=bench.timeout + 180 * options.minutes).run("huggingface", job))
    hypotheses = [corpus.tokenizer.decode(ids) for ids in found["hypotheses"]]
    references = corpus.lines("test", corpus.config.data.target_lang)
    return {**found, "bleu": float(BLEU().corpus_score(hypotheses, [references]).score)}
