"""Compare the speed of translating through `nmt.load(...).translate` with CTranslate2's, taking turns in one run.

    .venv/bin/python scripts/bench/interface.py outputs/demo data/demo/test.en --precision fp32 --threads 1 --batch 1,32

Both take lines of text, and give lines of text; CTranslate2 has the same weights, and searches for about as long. For
the figures of a CPU with AVX2 alone: ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import nmt
from nmt.cli import main as command
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.decoding.load import load_engine

PATIENCE = 2
"""Finished hypotheses per beam before CTranslate2's search ends: about as many steps as nmt's takes."""
EXTRA_PIECES = 50
Translate = Callable[[list[str]], Sequence[object]]


def ours(run: Path, precision: str, threads: int, beam: int) -> Translate:
    """Return nmt's translation, as programs call it."""
    if precision == "int8":  # an engine of the commands, which the Python interface does not name
        words = [f"name={run.name}", f"paths.outputs={run.resolve().parent}", "engine=int8"]
        config = compose([*words, "runtime.device=cpu", f"runtime.threads={threads}"])
        model = load_engine(config, prepare_machine(config.runtime))
    else:
        model = nmt.load(run, device="cpu", precision=precision, threads=threads)
    return lambda lines: [each.text for each in model.translate(lines, beam=beam)]


def ctranslate2(run: Path, precision: str, threads: int, beam: int, text: Path, folder: str) -> Translate:
    """Return CTranslate2's translation with the weights that `nmt export` writes."""
    import ctranslate2 as peer  # noqa: PLC0415 - it may be missing

    words = [f"name={run.name}", f"paths.outputs={run.resolve().parent}", f"input={text.resolve()}"]
    words += [f"export.folder={folder}/model", "checkpoint=averaged"]
    if command(["export", *words, f"export.quantization={'int8' if precision == 'int8' else 'float32'}"]):
        raise SystemExit("the export failed: see above")
    kind = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}[precision]
    engine = peer.Translator(f"{folder}/model", device="cpu", compute_type=kind, intra_threads=threads)
    tokenizer = nmt.load(run, device="cpu", threads=threads).engine.tokenizer
    ids = {piece: index for index, piece in enumerate(tokenizer.vocabularies[1])}

    def translate(lines: list[str]) -> list[str]:
        sources = tokenizer.encode_input(lines)
        found = engine.translate_batch(
            [tokenizer.source_pieces(each) for each in sources], beam_size=beam, patience=PATIENCE, length_penalty=0.6,
            max_batch_size=len(lines), max_decoding_length=max(map(len, sources)) + EXTRA_PIECES,
        )  # fmt: skip
        return [tokenizer.decode([ids[piece] for piece in each.hypotheses[0]]) for each in found]

    return translate


def seconds(translate: Translate, batches: Sequence[list[str]]) -> float:
    """Return how long all batches take."""
    start = time.perf_counter()
    for batch in batches:
        translate(batch)
    return time.perf_counter() - start


def main() -> None:
    """Measure in rounds, and print the best of each engine; CTranslate2 has bf16 on few CPUs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", default="1,32,256")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    lines = options.text.read_text(encoding="utf-8").splitlines()[: options.sentences]
    settings = (options.run, options.precision, options.threads, options.beam)
    with tempfile.TemporaryDirectory() as folder:
        peers = {} if options.precision == "bf16" else {"CTranslate2": ctranslate2(*settings, options.text, folder)}
        engines = {"nmt": ours(*settings), **peers}  # nmt last: each load sets the threads of the process
        for size in map(int, options.batch.split(",")):
            ordered = sorted(lines, key=len, reverse=True) if size > 1 else lines
            batches = [ordered[start : start + size] for start in range(0, len(ordered), size)]
            best = dict.fromkeys(engines, float("inf"))
            for number in range(options.rounds + 1):  # the first round prepares
                for name, translate in engines.items():
                    best[name] = min(best[name], seconds(translate, batches)) if number else best[name]
            rates = ", ".join(f"{name} {len(lines) / found:.1f}" for name, found in best.items())
            print(f"{options.precision}, {options.threads} threads, batches of {size}: {rates} sentences/s", flush=True)


if __name__ == "__main__":
    main()
