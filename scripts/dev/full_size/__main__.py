"""Prepare and read a generated corpus of full size; print the time and memory of each task.

    .venv/bin/python scripts/dev/full_size --pairs 4500000 --ceiling 4
    .venv/bin/python scripts/dev/full_size --pairs 40000000 --ceiling 10 data=wmt14_en_fr
    .venv/bin/python scripts/dev/full_size --pairs 40000000 --ceiling 10 --random-ids

The text combines sentences of the demo grammar, or of `--text SOURCE TARGET`, with invented rare words: about 25 words
per side. It is written as Parquet shards in the Hub's layout and prepared as WMT14 is. With --random-ids there is no
text: a store of random ids is opened, planned and read. Linux only.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from nmt.commands.data import summary
from nmt.compute.processes import run_in_process
from nmt.config.compose import compose
from nmt.config.tree import Config
from nmt.data.batches import Batching, PairLengths, plan_epoch
from nmt.data.engine import open_engine
from nmt.data.loader import DataPosition, global_batches, prefetched
from nmt.data.prepare import prepare
from nmt.data.sources.files import inputs, read_pairs
from nmt.data.store import PairStore
from nmt.demo.source import draw

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from full_size.meter import HEAD, Meter
from full_size.text import LANGUAGES, write_random_store, write_shards
from shared.command_line import at_least, positive, run_tool, tool_parser

POOL = 20_000
"""Sentences of the grammar from which the text is combined."""
STARTED, STARTED_SECONDS = 16, 0.1
"""Items that workers get before they are measured, and the time that each takes."""
BATCHES = 300
STEP_SECONDS = 0.4
"""Time of a training step of the paper's base model on its eight GPUs."""


def main() -> int:
    """Measure and print; return 1 if memory exceeded the ceiling."""
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="full-size-", dir=arguments.folder))
    config = _config(folder, arguments)
    try:
        with Meter() as meter:
            if arguments.random_ids:
                vocabulary, max_pieces = config.tokenizer.vocab_size, config.data.max_pieces
                run_in_process(write_random_store, config.data_folder, arguments.pairs, vocabulary, max_pieces)
            else:
                _generate(arguments, folder)
                _prepare(config, meter, arguments.pairs)
            _read(config, meter)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    print("", HEAD, *(use.row() for use in meter.uses), sep="\n")
    peak = max(use.peak_bytes for use in meter.uses) / 2**30
    print(
        f"peak {peak:.2f} GiB, ceiling {arguments.ceiling:g} GiB: {'kept' if peak <= arguments.ceiling else 'EXCEEDED'}"
    )
    return int(peak > arguments.ceiling)


def _arguments() -> argparse.Namespace:
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--pairs", type=at_least(1), default=4_500_000, help="size of the training split")
    parser.add_argument("--ceiling", type=positive, default=4.0, help="GiB of memory that no task may exceed")
    parser.add_argument("--folder", help="folder for the files (about 800 bytes per pair)")
    parser.add_argument("--keep", action="store_true", help="keep the generated text and the prepared corpus")
    parser.add_argument("--random-ids", action="store_true", help="measure only opening, planning and reading")
    parser.add_argument("--text", nargs=2, metavar=("SOURCE", "TARGET"), help="source of sentences for the text")
    parser.add_argument("overrides", nargs="*", help="settings, such as data=wmt14_en_fr")
    return parser.parse_args()


def _config(folder: Path, arguments: argparse.Namespace) -> Config:
    languages = [f"data.{side}_lang={language}" for side, language in zip(("source", "target"), LANGUAGES, strict=True)]
    source = (f"data.hub_dataset={folder}/hub", "data.hub_config=generated", "data.hub_revision=generated")
    return compose([*arguments.overrides, *languages, *source, f"paths.data={folder}"])


def _generate(arguments: argparse.Namespace, folder: Path) -> None:
    """Write the text."""
    if arguments.text:
        pool = list(read_pairs(inputs(arguments.text, "train"), LANGUAGES))
    else:
        pool = [each.pair for each in draw(1, POOL, 1, 2)["train"]]
    start, text = time.perf_counter(), folder / "hub" / "generated"
    run_in_process(write_shards, text, arguments.pairs, pool)  # in another process: its memory is not counted
    print(f"text generated in {time.perf_counter() - start:.0f} s (not part of preparation)", flush=True)


def _prepare(config: Config, meter: Meter, pairs: int) -> None:
    """Prepare the corpus; its lines of progress show when a task ends, and the next one begins."""

    def say(line: str) -> None:
        name, _, message = line.partition(": ")
        if message.startswith("done"):
            meter.uses[-1].name, meter.uses[-1].pairs = name, 0 if name.endswith(("valid", "test")) else pairs
            meter.end()
            print(meter.uses[-1].row(), flush=True)
            meter.begin("the rest")

    print(HEAD)
    engine = open_engine(config)
    if config.data.engine == "ray":  # its workers are started once for all tasks
        meter.begin("start workers")
        list(engine.map("start", range(STARTED), _waiting))
        meter.end()
        print(meter.uses[-1].row(), flush=True)
    start = time.perf_counter()
    meter.begin("the first task")
    manifest = prepare(config, say, engine)
    meter.end()
    print(f"prepared in {time.perf_counter() - start:.0f} s, fetching included", flush=True)
    print("", *summary(manifest, config), sep="\n", flush=True)


def _waiting() -> Callable[[int], int]:
    """Return a function that takes long enough for each worker to get an item."""

    def wait(item: int) -> int:
        time.sleep(STARTED_SECONDS)
        return item

    return wait


def _read(config: Config, meter: Meter) -> None:
    """Open the store, plan an epoch, read batches as training does, and verify the checksums."""
    meter.begin("open")
    store = PairStore.open(config.data_folder, "train")
    meter.end()
    meter.begin("plan", len(store))
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    epoch = plan_epoch(lengths, Batching.of(config.training, config.seed), epoch=0)
    meter.end()
    print(f"\n{len(epoch):,} batches per epoch, of up to {config.training.batch_tokens:,} tokens per side")
    del epoch, lengths
    _read_batches(config, store, meter)
    meter.begin("verify", len(store))
    store.verify()
    meter.end()


def _read_batches(config: Config, store: PairStore, meter: Meter) -> None:
    stream = global_batches(
        store, Batching.of(config.training, config.seed), device_tokens=0, start=DataPosition(), rank=0, devices=1
    )
    with closing(prefetched(stream)) as batches:
        next(batches)  # waits for the plan
        meter.begin("read batches")
        meter.uses[-1].pairs = sum(len(next(batches).micro_batches[0].sentences) for _ in range(BATCHES))
        meter.end()
        waits = []
        for _ in range(BATCHES // 10):
            time.sleep(STEP_SECONDS)
            start = time.perf_counter()
            next(batches)
            waits.append(1000 * (time.perf_counter() - start))
    print(f"between training steps of {STEP_SECONDS} s, waiting for a batch: {np.median(waits):.2f} ms (median)")


if __name__ == "__main__":
    run_tool(main, __file__)
