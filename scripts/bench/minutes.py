"""Compare engines after the same time of training: each trains, then translates the test set with beam search."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import Corpus, open_corpus, shape_overrides, write_text
from engines import ENGINES, ROOT, Bench
from sacrebleu.metrics.bleu import BLEU
from tables import table

from nmt.errors import UserError
from nmt.storage.files import read_json

MARGIN = 0.9
"""Fraction of the steps that the measured speed allows for nmt: the run should end in time even on busier cores."""
SLOWEST = 3
"""How many times its minutes an engine may train: other programs can take most of the processors from CPU time."""
RECIPE = ("training.schedule=cosine", "training.warmup_steps=400", "training.steps=100000", "training.save_every=100")
"""A peer's schedule and its warmup follow the time, as ours do, so that it uses all of its minutes."""


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Train and score one engine after the other, and print the scores."""
    results = {}
    bench = bench._replace(timeout=bench.timeout + SLOWEST * 60 * options.minutes)
    for name in options.engines:
        precision = options.precision or _faster_precision(options, bench, name)
        train = train_nmt if name == "ours" else train_peer
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            results[name] = {"precision": precision, **train(options, bench, name, precision, Path(folder))}
    unit = "minutes of CPU time" if options.cpu_time else "minutes"
    recipe = f"{options.shape}, batches of {options.batch_tokens:,} tokens, beam {options.beam}"
    bench.print_title(f"{options.minutes:g} {unit} of training, {recipe}")
    head = ("engine", "precision", "updates", "minutes", "development perplexity", "sacreBLEU")
    print(table(head, [_cells(name, each) for name, each in results.items() if "refused" not in each]))
    print("".join(f"\n{ENGINES[name].title}: {each['refused']}" for name, each in results.items() if "refused" in each))
    return {"minutes": results}


def _corpus(options: argparse.Namespace, bench: Bench, *extra: str) -> Corpus:
    """Open the corpus with the peers' recipe: the paper's post-norm model, the only one that most of them support."""
    shape = shape_overrides(options.shape, options.batch_tokens)
    recipe = [*RECIPE, f"training.learning_rate={options.rate}", f"model.dropout={options.dropout}"]
    return open_corpus([*options.overrides, *shape, *recipe, *extra], bench.threads)


def _updates_per_second(options: argparse.Namespace, bench: Bench, name: str, precision: str) -> float:
    """Return the updates per second of a short measurement; 0 if the engine refuses."""
    corpus = _corpus(options, bench)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        times = {"warmup": options.warmup, "seconds": options.seconds, "cpu_time": options.cpu_time}
        if name == "eole":
            write_text(corpus, Path(folder))
        result = bench.run(name, corpus.job("speed", precision, Path(folder), **times))
    return 0.0 if "refused" in result else result["updates"] / result["seconds"]


def _faster_precision(options: argparse.Namespace, bench: Bench, name: str) -> str:
    return max(ENGINES[name].precisions, key=lambda precision: _updates_per_second(options, bench, name, precision))


def train_nmt(options: argparse.Namespace, bench: Bench, name: str, precision: str, folder: Path) -> dict[str, Any]:
    """Train, average and score with the command line, with the settings of the experiment and of `--ours`."""
    steps = max(1, int(MARGIN * 60 * options.minutes * _updates_per_second(options, bench, name, precision)))
    settings = [
        *options.overrides,
        f"training.batch_tokens={options.batch_tokens}",
        f"training.steps={steps}",
        f"training.max_training_minutes={0 if options.cpu_time else options.minutes}",
        f"training.valid_every={steps}",
        f"runtime.threads={bench.threads}",
        f"runtime.precision={precision}",
        "runtime.device=cpu",
        f"decoding.beam={options.beam}",
        "evaluation.splits=[valid,test]",
        "name=minutes",
        f"paths.outputs={folder}",
        *options.ours,
    ]
    seconds = 0.0
    for stage in ("train", "average", "eval"):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "nmt", stage, *settings], cwd=ROOT, stdout=sys.stderr, check=False)
        if done.returncode:
            raise UserError(f"nmt {stage} failed: see its message above")
        seconds = seconds or time.perf_counter() - began
    valid, test = (read_json(folder / "minutes" / "eval" / f"{split}.json") for split in ("valid", "test"))
    updates = int(max((folder / "minutes" / "checkpoints").glob("step-*")).name.removeprefix("step-"))
    return {"updates": updates, "seconds": seconds, "perplexity": valid["perplexity"], "bleu": test["bleu"]["score"]}


def train_peer(options: argparse.Namespace, bench: Bench, name: str, precision: str, folder: Path) -> dict[str, Any]:
    """Train and translate with the peer's driver until the time is over, and score the translations."""
    corpus = _corpus(options, bench, f"training.max_training_minutes={options.minutes}")
    test, tokenizer = corpus.store("test"), corpus.tokenizer
    sources = [test.source(index).tolist() for index in range(len(test))]
    search = {"sources": sources, "beam": options.beam, "alpha": 1.0, "batch": 64}
    limit = {"minutes": options.minutes, "cpu_time": options.cpu_time}
    result = bench.run(name, corpus.job("minutes", precision, folder, **limit, **search))
    if "refused" in result:
        return result
    hypotheses = [tokenizer.decode(ids) for ids in result.pop("hypotheses")]
    path = corpus.config.data_folder / f"test.{corpus.config.data.target_lang}"
    references = path.read_text(encoding="utf-8").splitlines()
    return {**result, "bleu": float(BLEU().corpus_score(hypotheses, [references]).score)}


def _cells(name: str, each: dict[str, Any]) -> list[str]:
    minutes, perplexity = f"{each['seconds'] / 60:.1f}", f"{each['perplexity']:.2f}"
    return [ENGINES[name].title, each["precision"], f"{each['updates']:,}", minutes, perplexity, f"{each['bleu']:.2f}"]
