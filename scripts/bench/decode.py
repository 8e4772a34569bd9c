"""Compare translation through `nmt.load(...).translate` with CTranslate2, which has the same weights, line by line."""

import argparse
from typing import Any

from corpus import open_corpus
from engines import Bench, print_table

HEAD = ("threads, precision", "engine", "sentences per batch", "sentences/s", "lowest to highest", "sacreBLEU")


def measure(options: argparse.Namespace, bench: Bench) -> None:
    """Measure each kind of CPU, number of threads and precision in a process; the engines take turns in it."""
    lines, references = _text(options, bench)
    for cpu in options.cpus:
        rows = []
        for threads in options.threads:
            for precision in options.precisions:
                job = {
                    "kind": "translate", "precision": precision, "run": str(options.run.resolve()), "lines": lines,
                    "references": references, "batches": options.batches, "beam": options.beam,
                    "rounds": options.rounds,
                }  # fmt: skip
                found = bench._replace(cpu=cpu, threads=threads).run("interface", job)
                rows += _rows(f"{threads}, {precision}", found)
        print(f"\nTranslation by {options.run}, beam {options.beam}, {len(lines):,} sentences")
        print(f"{bench._replace(cpu=cpu).machine.rpartition(', ')[0]}\n")
        print_table(HEAD, rows)


def _text(options: argparse.Namespace, bench: Bench) -> tuple[list[str], list[str]]:
    """Return the lines to translate, and their references if they are the corpus's."""
    if options.text:
        return options.text.read_text(encoding="utf-8").splitlines()[: options.sentences], []
    corpus = open_corpus(options.overrides, bench.threads)
    data = corpus.config.data
    source, target = (corpus.lines("test", each) for each in data.languages)
    return source[: options.sentences], target[: options.sentences]


def _rows(case: str, found: dict[str, Any]) -> list[tuple[str, ...]]:
    if "refused" in found:
        return [(case, found["refused"], "", "", "", "")]
    return [
        (case, each["engine"], str(each["batch"]), f"{each['median']:,.1f}",
         f"{each['lowest']:,.1f} to {each['highest']:,.1f}", f"{each['bleu']:.2f}" if "bleu" in each else "")
        for each in found["rows"]
    ]  # fmt: skip
