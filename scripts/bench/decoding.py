"""Decoding speed: engines in turn with the same weights, text, beam and length limit, in batches of like length.

Two threads translate a batch together, or each a batch of its own where an engine can: whichever is the faster for it.
Ours, CTranslate2, JoeyNMT and eole rank by the same length penalty; Hugging Face divides by length^alpha, which is its
only one. What an engine cannot express of a model, it refuses: pre-norm Hugging Face, post-norm eole.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from corpus import Corpus, open_corpus, write_text
from engines import ENGINES, Bench
from sacrebleu.metrics.bleu import BLEU
from tables import table

from nmt.config.saved import from_yaml

TRANSLATORS = ("ours", "huggingface", "ctranslate2", "joeynmt", "eole")
PRECISIONS = {"ours": ("fp32", "bf16"), "ctranslate2": ("fp32", "int8")}
"""Of the others, fp32 alone."""


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Measure every checkpoint with every size of batch, and print a table of each."""
    found = {}
    for checkpoint in options.checkpoint:
        trained = from_yaml((checkpoint / "config.yaml").read_text(encoding="utf-8"))
        corpus = open_corpus(options.overrides, bench.threads)
        test = corpus.store("test")
        sources = [test.source(index).tolist() for index in range(min(options.sentences or len(test), len(test)))]
        with tempfile.TemporaryDirectory(prefix="bench-") as text:
            write_text(corpus, Path(text))
            job = {
                **corpus.job("translate", "fp32", Path(text)),
                "model": asdict(trained.model),
                "checkpoint": str(checkpoint.absolute()),
                "sources": sources,
                "beam": options.beam,
                "alpha": options.alpha,
            }
            for batch in options.batch:
                rows = _rounds(options, bench, corpus, {**job, "batch": batch})
                found[f"{checkpoint} batch {batch}"] = rows
                print(f"\n{checkpoint}, batches of {batch}, beam {options.beam}, {options.threads} threads\n")
                print(render(rows))
    return {"decoding": found}


def _rounds(options: argparse.Namespace, bench: Bench, corpus: Corpus, job: dict[str, Any]) -> list[dict[str, Any]]:
    cases = [(name, precision) for name in options.engines for precision in PRECISIONS.get(name, ("fp32",))]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for (name, precision), so_far in found.items():
            if not so_far or "refused" not in so_far[-1]:
                so_far.append(bench.run(name, {**job, "precision": precision}))
    first = found.get(("ours", "fp32"), [{}])[-1].get("hypotheses")
    return [_row(case, results, corpus, first) for case, results in found.items()]


def _row(
    case: tuple[str, str], results: Sequence[dict[str, Any]], corpus: Corpus, first: list[list[int]] | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": case[0], "precision": case[1]}
    if "refused" in results[-1]:
        return {**row, "refused": results[-1]["refused"]}
    found, tokenizer = results[-1]["hypotheses"], corpus.tokenizer
    hypotheses = [tokenizer.decode(ids) for ids in found]
    path = corpus.config.data_folder / f"test.{corpus.config.data.target_lang}"
    references = path.read_text(encoding="utf-8").splitlines()[: len(hypotheses)]
    return {
        **row,
        "sentences_per_second": len(found) / median(each["seconds"] for each in results),
        "seconds": [each["seconds"] for each in results],
        "batches": results[-1]["batches"],
        "bleu": float(BLEU().corpus_score(hypotheses, [references]).score),
        "unlike": sum(one != other for one, other in zip(found, first, strict=True)) if first else None,
        "memory": max(each["memory"] for each in results),
    }


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The table, and why engines are missing from it."""
    head = ("engine", "precision", "batches", "sentences/s", "sacreBLEU", "unlike ours in fp32", "memory")
    refusals = [f"\n{ENGINES[row['engine']].title}: {row['refused']}" for row in rows if "refused" in row]
    return "\n".join([table(head, [_cells(row) for row in rows]), *refusals])


def _cells(row: dict[str, Any]) -> list[str]:
    first = [ENGINES[row["engine"]].title, row["precision"]]
    if "refused" in row:
        return [*first, "", "none", "", "", ""]
    unlike = "" if row["unlike"] is None else str(row["unlike"])
    return [
        *first,
        row["batches"],
        f"{row['sentences_per_second']:,.1f}",
        f"{row['bleu']:.2f}",
        unlike,
        f"{row['memory'] / 1e9:.2f} GB",
    ]
