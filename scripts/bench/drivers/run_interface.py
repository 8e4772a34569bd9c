"""Translate lines to lines as programs do with nmt, and with CTranslate2, taking turns.

CTranslate2 searches for about as long as nmt does, and both cut nothing. If it cannot compute in a precision, as in
bf16 on most CPUs, nmt is measured alone.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from protocol import Job, Result, serve
from sacrebleu.metrics.bleu import BLEU

import nmt
from nmt.cli import main as command
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.decoding.load import load_engine
from nmt.errors import UserError

PATIENCE = 2
"""Finished hypotheses per beam before CTranslate2's search ends: about as many steps as nmt's takes."""
EXTRA_PIECES = 50
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
Translate = Callable[[list[str]], Sequence[str]]


def translate(job: Job) -> Result:
    """Measure each size of batches in rounds; the first round prepares."""
    torch.set_num_threads(job["threads"])
    theirs = None if job.get("alone") else ctranslate2(job)
    engines = {"nmt": ours(job), **({"CTranslate2": theirs} if theirs else {})}  # nmt's threads are the process's
    rows = []
    for size in job["batches"]:
        lines = sorted(job["lines"], key=len, reverse=True) if size > 1 else job["lines"]
        batches = [lines[start : start + size] for start in range(0, len(lines), size)]
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(job["rounds"] + 1):
            for name, engine in engines.items():
                began = time.perf_counter()
                for batch in batches:
                    engine(batch)
                if number:
                    rates[name].append(len(lines) / (time.perf_counter() - began))
        rows += [
            {"engine": name, "batch": size, "median": median(each), "lowest": min(each), "highest": max(each)}
            for name, each in rates.items()
        ]
    if job["references"]:
        for row in rows:
            found = engines[row["engine"]](job["lines"])
            row["bleu"] = float(BLEU().corpus_score(found, [job["references"]]).score)
    return {"rows": rows}


def ours(job: Job) -> Translate:
    """Return nmt's translation, as programs call it."""
    run, threads = Path(job["run"]), job["threads"]
    model: Any
    if job["precision"] == "int8":  # an engine of the commands, which the Python interface does not name
        words = [f"name={run.name}", f"paths.outputs={run.parent}", "engine=int8", "runtime.device=cpu"]
        config = compose([*words, f"runtime.threads={threads}"])
        model = load_engine(config, prepare_machine(config.runtime))
    else:
        model = nmt.load(run, device="cpu", precision=job["precision"], threads=threads)
    return lambda lines: [each.text for each in model.translate(lines, beam=job["beam"])]


def ctranslate2(job: Job) -> Translate | None:
    """Return CTranslate2's translation with the weights that `nmt export` writes, if it has the precision."""
    try:
        import ctranslate2 as peer  # noqa: PLC0415 - it may be missing
    except ModuleNotFoundError as error:
        raise UserError("CTranslate2 is not installed: .venv/bin/pip install ctranslate2") from error
    kind = COMPUTE_TYPES[job["precision"]]
    if kind not in peer.get_supported_compute_types("cpu"):
        return None
    run, folder = Path(job["run"]), Path(job["folder"]) / "model"
    words = [f"name={run.name}", f"paths.outputs={run.parent}", f"export.folder={folder}", "checkpoint=averaged"]
    text = Path(job["folder"]) / "text"
    text.write_text("\n".join(job["lines"][:20]), encoding="utf-8")
    words += [f"input={text}", f"export.quantization={'int8' if kind == 'int8' else 'float32'}"]
    if command(["export", *words]):
        raise UserError("the export failed")
    engine = peer.Translator(str(folder), device="cpu", compute_type=kind, intra_threads=job["threads"])
    tokenizer = nmt.load(run, device="cpu", threads=job["threads"]).engine.tokenizer
    ids = {piece: index for index, piece in enumerate(tokenizer.vocabularies[1])}

    def translate_lines(lines: list[str]) -> list[str]:
        sources = tokenizer.encode_input(lines)
        found = engine.translate_batch(
            [tokenizer.source_pieces(each) for each in sources], beam_size=job["beam"], patience=PATIENCE,
            length_penalty=0.6, max_batch_size=256, max_decoding_length=max(map(len, sources)) + EXTRA_PIECES,
        )  # fmt: skip
        return [tokenizer.decode([ids[piece] for piece in each.hypotheses[0]]) for each in found]

    return translate_lines


if __name__ == "__main__":
    serve(translate=translate)
