"""Compare decoding speed: engines take turns with the same weights, text, beam, length limit and batches.

With `--controls`, each engine also searches with the controls of the search that it has, such as no repeated n-grams.

Batches hold sentences of similar length. All threads share a batch, or each thread has a batch of its own if the engine
supports it, whichever is faster. nmt, CTranslate2 and eole rank with the same length penalty; Hugging Face
only offers division by length^alpha. An engine refuses models that it cannot represent: Hugging Face pre-norm, eole
post-norm. "Choosing" is the share of the time in which minimum Bayes risk chooses among its candidates.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from corpus import Corpus, open_corpus, write_text
from engines import ENGINES, Bench
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from tables import table

from nmt.config.saved import from_yaml
from nmt.errors import UserError
from nmt.runs.checkpoint import load
from nmt.text.tokenizer import Tokenizer

Case = tuple[str, str, str]
"""An engine, a precision and a control."""
TRANSLATORS = ("ours", "huggingface", "ctranslate2", "eole")
CONTROLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "nbest": {"nbest": 5},
    "no_repeat_ngram": {"no_repeat_ngram": 3},
    "min_length": {"min_length": 5},
    "suppress_unknown": {"suppress_unknown": True},
    "terms": {},
    "sample": {"strategy": "sample", "nbest": 64, "top_k": 10},
    "mbr": {"strategy": "mbr", "candidates": 64, "top_p": 0.9},
    "mbr_bleu": {"strategy": "mbr", "candidates": 64, "top_p": 0.9, "utility": "bleu"},
    "mbr_16": {"strategy": "mbr", "candidates": 16, "top_p": 0.9},
    "mbr_bleu_16": {"strategy": "mbr", "candidates": 16, "top_p": 0.9, "utility": "bleu"},
}
"""The settings of the search that each control adds; `terms` requires the longest word of each reference."""
PRECISIONS = {"ours": ("fp32", "bf16", "int8"), "ctranslate2": ("fp32", "int8")}
"""Precisions per engine; the others only have fp32."""
METRICS = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Measure every checkpoint with every batch size, and print a table for each."""
    results = {}
    for checkpoint in options.checkpoint:
        trained = from_yaml(load(checkpoint).config_text)
        corpus = open_corpus(options.overrides, bench.threads)
        if Tokenizer.load(checkpoint).contents != corpus.tokenizer.contents:
            raise UserError(f"{checkpoint} has another tokenizer than the corpus: name the experiment of its training")
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
                results[f"{checkpoint} batch {batch}"] = rows
                bench.print_title(f"{checkpoint}, batches of {batch}, beam {options.beam}, {options.threads} threads")
                print(render(rows))
    return {"decoding": results}


def _rounds(options: argparse.Namespace, bench: Bench, corpus: Corpus, job: dict[str, Any]) -> list[dict[str, Any]]:
    cases = [
        (name, precision, control)
        for control in options.controls
        for name in options.engines
        for precision in PRECISIONS.get(name, ("fp32",))
        if precision in options.precisions
    ]
    results: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    terms = _longest_words(corpus, len(job["sources"])) if "terms" in options.controls else []
    for _ in range(options.rounds):
        for (name, precision, control), rounds in results.items():
            if not rounds or "refused" not in rounds[-1]:
                added = {"controls": CONTROLS[control], "terms": terms if control == "terms" else []}
                rounds.append(bench.run(name, {**job, "precision": precision, **added}))
    nmt_fp32 = results.get(("ours", "fp32", "plain"), [{}])[-1].get("hypotheses")
    return [_row(case, rounds, corpus, nmt_fp32) for case, rounds in results.items()]


def _longest_words(corpus: Corpus, sentences: int) -> list[list[int]]:
    """Return the tokens of the longest word of each reference."""
    path = corpus.config.data_folder / f"test.{corpus.config.data.target_lang}"
    references = path.read_text(encoding="utf-8").splitlines()[:sentences]
    words = [re.findall(r"\w+", line) for line in references]
    return corpus.tokenizer.encode_target([max(each, key=len, default="") for each in words])


def _row(
    case: Case, rounds: Sequence[dict[str, Any]], corpus: Corpus, nmt_fp32: list[list[int]] | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": case[0], "precision": case[1], "control": case[2]}
    if "refused" in rounds[-1]:
        return {**row, "refused": rounds[-1]["refused"]}
    translations, tokenizer = rounds[-1]["hypotheses"], corpus.tokenizer
    hypotheses = [tokenizer.decode(ids) for ids in translations]
    path = corpus.config.data_folder / f"test.{corpus.config.data.target_lang}"
    references = path.read_text(encoding="utf-8").splitlines()[: len(hypotheses)]
    return {
        **row,
        "sentences_per_second": len(translations) / median(each["seconds"] for each in rounds),
        "seconds": [each["seconds"] for each in rounds],
        "batches": rounds[-1]["batches"],
        **{name: float(metric.corpus_score(hypotheses, [references]).score) for name, metric in METRICS.items()},
        "choosing": rounds[-1].get("choosing"),
        "different": _differences(translations, nmt_fp32) if nmt_fp32 else None,
        "memory": max(each["memory"] for each in rounds),
    }


def _differences(translations: list[list[int]], others: list[list[int]]) -> int:
    return sum(one != other for one, other in zip(translations, others, strict=True))


def render(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table, and below it the reason of each engine that has no result."""
    head = (
        "engine",
        "precision",
        "control",
        "batches",
        "sentences/s",
        "choosing",
        "BLEU",
        "chrF",
        "TER",
        "different from nmt in fp32",
        "memory",
    )
    refusals = [
        f"\n{ENGINES[row['engine']].title}, {row['control']}: {row['refused']}" for row in rows if "refused" in row
    ]
    return "\n".join([table(head, [_cells(row) for row in rows]), *refusals])


def _cells(row: dict[str, Any]) -> list[str]:
    first = [ENGINES[row["engine"]].title, row["precision"], row["control"]]
    if "refused" in row:
        return [*first, "", "no result", *[""] * 6]
    different = "" if row["different"] is None else str(row["different"])
    return [
        *first,
        row["batches"],
        f"{row['sentences_per_second']:,.1f}",
        "" if row["choosing"] is None else f"{row['choosing']:.1%}",
        *(f"{row[name]:.2f}" for name in METRICS),
        different,
        f"{row['memory'] / 1e9:.2f} GB",
    ]
