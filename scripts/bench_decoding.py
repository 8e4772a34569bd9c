"""Decoding speed of this project and its peers: the same weights, text, beam and length limit, in turn in one run.

    .venv/bin/python scripts/bench_decoding.py --checkpoint outputs/multi30k/checkpoints/averaged \
        --source data/multi30k/test.en --reference data/multi30k/test.de

Each engine translates the text once to warm up and then `--rounds` times, the engines taking turns; what is
told is the fastest round. Batches hold `--batch` sentences of like length. Hugging Face and CTranslate2 take
part where their packages are installed, with weights that are converted on the spot. JoeyNMT and eole cannot
load these weights; `--peer NAME=COMMAND` times any command that reads the source on standard input and writes
translations to standard output, such as theirs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics.bleu import BLEU

from nmt.config.compose import from_yaml
from nmt.config.schema import DecodingConfig
from nmt.decoding.deployed import Deployed
from nmt.decoding.translate import Engine, Translator, load_model
from nmt.errors import UserError
from nmt.export import ctranslate2, huggingface
from nmt.machine import keep_memory
from nmt.runs.checkpoints import load

CPU = torch.device("cpu")
Translate = Callable[[Sequence[str]], list[str]]


@dataclass
class Measured:
    """What was seen of an engine."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    hypotheses: list[str] = field(default_factory=list)


def main() -> None:
    """Measure, and print a table and, with --json, the figures."""
    options = _options()
    torch.set_num_threads(options.threads)
    keep_memory()
    sources = options.source.read_text(encoding="utf-8").splitlines()[: options.sentences]
    references = options.reference.read_text(encoding="utf-8").splitlines()[: options.sentences]
    report = []
    for batch in options.batch:
        with tempfile.TemporaryDirectory() as folder:
            engines = _engines(options, batch, Path(folder))
            measured = _measure(engines, sources, options.rounds)
        report += [_row(name, batch, each, references, measured["nmt fp32"]) for name, each in measured.items()]
    for row in report:
        print(
            f"{row['engine']:<22} batch {row['batch']:>4}  {row['sentences_per_second']:>8.1f} sentences/s  "
            f"{row['cpu_seconds']:>7.2f} CPU s  BLEU {row['bleu']:5.2f}  {row['unlike']:>4} unlike nmt fp32"
        )
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of a checkpoint")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32, 256])
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=0.6, help="exponent of the length penalty")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=None, help="only so many, from the beginning")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    return parser.parse_args()


def _engines(options: argparse.Namespace, batch: int, folder: Path) -> dict[str, Translate]:
    checkpoint = load(options.checkpoint)
    config = from_yaml(checkpoint.config_text)
    model, tokenizer = load_model(checkpoint, config.model, CPU)
    decoding = DecodingConfig(beam=options.beam, alpha=options.alpha, batch_tokens=sys.maxsize)
    engines: dict[str, Translate] = {}
    for name, precision in (("nmt fp32", torch.float32), ("nmt bf16", torch.bfloat16)):
        engines[name] = partial(_by_engine, Translator([model], tokenizer, decoding, CPU, precision), batch)
    if find_spec("ctranslate2"):
        for numbers in ("float32", "int8"):
            place = folder / numbers
            place.mkdir()
            ctranslate2.write(place, config.model, checkpoint.weights, tokenizer, numbers)
            engines[f"CTranslate2 {numbers}"] = partial(
                _by_engine, Deployed(place, decoding, "cpu", options.threads), batch
            )
    if find_spec("transformers"):
        place = folder / "huggingface"
        place.mkdir()
        languages = config.data.source_lang, config.data.target_lang
        try:
            huggingface.write(place, config.model, checkpoint.weights, tokenizer, languages, {})
            engines["Hugging Face"] = _hugging_face(place, decoding, batch)
        except UserError as error:
            print(f"without Hugging Face: {error}", file=sys.stderr)
    for peer in options.peer:
        name, _, command = peer.partition("=")
        engines[name] = partial(_by_command, command)
    return engines


def _by_engine(engine: Engine, batch: int, lines: Sequence[str]) -> list[str]:
    return _in_batches(lines, batch, lambda block: [each.text for each in engine.translate(block, window=batch)])


def _hugging_face(folder: Path, decoding: DecodingConfig, batch: int) -> Translate:
    import transformers  # noqa: PLC0415 - taken where it is there

    model: Any = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def block(lines: Sequence[str]) -> list[str]:
        ids = tokenizer(list(lines), return_tensors="pt", padding=True)
        with torch.no_grad():
            found = model.generate(
                **ids,
                num_beams=decoding.beam,
                length_penalty=decoding.alpha,
                max_new_tokens=ids.input_ids.shape[1] + decoding.extra_length,
            )
        texts: list[str] = tokenizer.batch_decode(found, skip_special_tokens=True)
        return texts

    return lambda lines: _in_batches(lines, batch, block)


def _in_batches(lines: Sequence[str], batch: int, block: Callable[[Sequence[str]], list[str]]) -> list[str]:
    """Translate sentences of like length together, and put them back in order."""
    order = sorted(range(len(lines)), key=lambda index: -len(lines[index]))
    results = [""] * len(lines)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        for index, text in zip(chosen, block([lines[index] for index in chosen]), strict=True):
            results[index] = text
    return results


def _by_command(command: str, lines: Sequence[str]) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, shell=True, input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _measure(engines: dict[str, Translate], sources: Sequence[str], rounds: int) -> dict[str, Measured]:
    measured = {name: Measured() for name in engines}
    for number in range(rounds + 1):
        for name, translate in engines.items():
            began, cpu_began = time.perf_counter(), time.process_time()
            hypotheses = translate(sources if number else sources[:64])
            if number:
                measured[name].seconds.append(time.perf_counter() - began)
                measured[name].cpu_seconds.append(time.process_time() - cpu_began)
                measured[name].hypotheses = hypotheses
            print(f"{name}, round {number}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return measured


def _row(name: str, batch: int, found: Measured, references: Sequence[str], first: Measured) -> dict[str, Any]:
    seconds = min(found.seconds)
    return {
        "engine": name,
        "batch": batch,
        "sentences_per_second": len(references) / seconds,
        "seconds": seconds,
        "cpu_seconds": min(found.cpu_seconds),
        "bleu": float(BLEU().corpus_score(found.hypotheses, [references]).score),
        "unlike": sum(one != other for one, other in zip(found.hypotheses, first.hypotheses, strict=True)),
    }


if __name__ == "__main__":
    main()
