"""Translate with the exports of a run as their users do, and compare the translations with those of the model.

    make export ARGS="experiment=multi30k export=onnx"
    NODE_MODULES=node_modules .venv/bin/python scripts/dev/export_clients --run outputs/multi30k --source test.en
        --reference test.de

The first rows are nmt itself. Each export in the folder `export` of the run is a row per client. The columns say which
share of its translations is that of nmt with the same search, and that of the client above it. Every line is translated
alone, on one core. NODE_MODULES names the folder with the npm package @huggingface/transformers,
ARGOS_PYTHON a Python with argostranslate.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from sacrebleu.metrics.bleu import BLEU

from nmt.config.saved import from_yaml
from nmt.config.schema import DecodingConfig
from nmt.decoding.engine import Engine
from nmt.decoding.int8_engine import Int8Engine
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.features.exports.exporter import Exporter, TrainedModel
from nmt.features.exports.record import ExportRecord, read_export_record
from nmt.features.exports.registry import EXPORTERS
from nmt.model.kernels.c.library import use_operations
from nmt.runs.checkpoints import load, resolve
from nmt.runs.layout import EXPORT_RECORD
from nmt.text.lines import read_lines

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
sys.path.insert(0, str(Path(__file__).parents[3]))  # finds `tests`
from shared.command_line import at_least, run_tool, tool_parser
from tests.features.exports import clients

CPU = torch.device("cpu")


class Export(NamedTuple):
    """An export, the model that it was made from with the search of its users, and what to translate."""

    folder: Path
    record: ExportRecord
    exporter: Exporter
    native: TorchEngine
    lines: list[str]


class Answer(NamedTuple):
    """What a client translated, and the seconds that it took."""

    texts: list[str]
    seconds: float


def translate(engine: Engine, lines: Sequence[str]) -> Answer:
    """Translate each line alone."""
    next(iter(engine.translate(lines[:1])))
    began = time.perf_counter()
    return Answer([next(iter(engine.translate([line]))).text for line in lines], time.perf_counter() - began)


def by_library(export: Export) -> Answer:
    """Translate with the library that the client uses, in Python."""
    return translate(export.exporter.open(export.folder, export.native, export.lines[:1]), export.lines)


def by_argos(export: Export) -> Answer:
    """Translate with Argos Translate."""
    (package,) = export.folder.glob("*.argosmodel")
    with TemporaryDirectory() as workspace:
        found = clients.argos(package.resolve(), export.record.languages, export.lines, Path(workspace))
    return Answer(found["found"], found["seconds"])


def by_transformers_js(export: Export) -> Answer:
    """Translate with transformers.js under Node."""
    dtype = "q8" if export.record.quantization == "int8" else "fp32"
    extra = export.native.config.extra_length
    with TemporaryDirectory() as workspace:
        found = clients.transformers_js(export.folder, dtype, export.lines, extra, Path(workspace))
    return Answer([each["text"] for each in found["found"]], found["seconds"])


CLIENTS: dict[str, dict[str, Callable[[Export], Answer]]] = {
    "argos": {"Argos Translate": by_argos},
    "ctranslate2": {"CTranslate2": by_library},
    "onnx": {"onnxruntime": by_library, "transformers.js under Node": by_transformers_js},
}
"""By target, the clients by name."""


def rows(arguments: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: its head, the model itself with each search, and each client of each export."""
    checkpoint = load(resolve(arguments.run, arguments.checkpoint))
    lines, references = (
        list(islice(read_lines(path), arguments.sentences)) for path in (arguments.source, arguments.reference)
    )
    torch.set_num_threads(1)
    use_operations(True, only=torch.float32)
    yield "export", "client", "as nmt", "as above", "BLEU", "sentences/s"
    yield ("---",) * 6
    settings = from_yaml(checkpoint.config_text)
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    usual = settings.decoding
    decoding = DecodingConfig(beam=usual.beam, alpha=usual.alpha, extra_length=usual.extra_length)
    engine = TorchEngine([model], tokenizer, decoding, CPU)
    own: dict[int, Answer] = {}
    for folder in sorted(path.parent for path in (arguments.run / "export").glob(f"*/{EXPORT_RECORD}")):
        record = read_export_record(folder)
        if arguments.only and record.target not in arguments.only:
            continue
        exporter = EXPORTERS[record.target]
        trained = TrainedModel(checkpoint, settings, tokenizer, decoding, record.quantization)
        export = Export(folder, record, exporter, exporter.native_engine(engine, trained), lines)
        beam = export.native.config.beam
        if beam not in own:
            own[beam] = translate(export.native, lines)
            yield _row("none", f"nmt, beam {beam}", own[beam], [], references)
            rounded = Int8Engine([model], tokenizer, export.native.config, CPU)
            yield _row("none", f"nmt in int8, beam {beam}", translate(rounded, lines), [own[beam]], references)
        compared = [own[beam]]
        for name, client in CLIENTS.get(record.target, {}).items():
            answer = client(export)
            yield _row(folder.name, name, answer, compared, references)
            compared.append(answer)


def _row(
    export: str, client: str, answer: Answer, compared: Sequence[Answer], references: list[str]
) -> tuple[str, ...]:
    """Return a row, given the answers of the model and of the clients above it."""
    shares = [sum(map(str.__eq__, answer.texts, other.texts)) / len(references) for other in compared]
    same, above = (f"{share:.1%}" for share in shares), ""
    bleu = BLEU().corpus_score(answer.texts, [references]).score
    speed = len(references) / answer.seconds
    return export, client, next(same, above), next(same, above), f"{bleu:.2f}", f"{speed:.1f}"


def main() -> None:
    """Print the table as Markdown."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder of the run")
    parser.add_argument("--checkpoint", default="averaged", help="the exported checkpoint")
    parser.add_argument("--source", type=Path, required=True, help="file to translate, a sentence per line")
    parser.add_argument("--reference", type=Path, required=True, help="file of its translations")
    parser.add_argument("--sentences", type=at_least(1), default=1000, help="number of lines to translate")
    parser.add_argument("--only", nargs="+", default=[], choices=list(CLIENTS), help="targets to measure; default all")
    arguments = parser.parse_args()
    arguments.run = arguments.run.resolve()  # clients run elsewhere
    for each in rows(arguments):
        print(f"| {' | '.join(each)} |", flush=True)


if __name__ == "__main__":
    run_tool(main, __file__)
