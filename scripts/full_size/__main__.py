"""Prepare and read a generated corpus of full size; print what each step takes.

    .venv/bin/python scripts/full_size --pairs 4500000 --ceiling 4
    .venv/bin/python scripts/full_size --pairs 40000000 --ceiling 10 data=wmt14_en_fr
    .venv/bin/python scripts/full_size --pairs 40000000 --ceiling 10 --random-ids

The text is put together from sentences of the demo grammar, or of `--text SOURCE TARGET`, and from made-up rare words:
about 25 words a side. Written as Parquet shards in the Hub's layout, it goes through the chain that WMT14 goes
through. With --random-ids there is no text: a store of random ids is opened, planned and read. Linux only.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from meter import HEAD, Meter
from text import LANGUAGES, write_random_store, write_shards

from nmt import grammar
from nmt.commands.data import table
from nmt.compute.processes import run_in_process
from nmt.config.compose import compose
from nmt.config.schema import Config
from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.loader import DataPosition, Prefetcher, global_batches
from nmt.data.prepare import prepare
from nmt.data.sources.files import inputs, read_pairs
from nmt.data.store import PairStore

POOL = 20_000
"""Sentences of the grammar that the text is put together from."""
BATCHES = 300
STEP_SECONDS = 0.4
"""What a training step of the paper's base model took on its eight GPUs."""


def main() -> int:
    """Measure, print, and say whether memory stayed below the ceiling."""
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="full-size-", dir=arguments.folder))
    config = _config(folder, arguments.overrides)
    try:
        with Meter() as meter:
            if arguments.random_ids:
                vocabulary, longest = config.tokenizer.vocab_size, config.data.max_pieces
                run_in_process(write_random_store, config.data_folder, arguments.pairs, vocabulary, longest)
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
        f"peak {peak:.2f} GiB, ceiling {arguments.ceiling:g} GiB: {'kept' if peak <= arguments.ceiling else 'BROKEN'}"
    )
    return int(peak > arguments.ceiling)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=4_500_000, help="size of the training split")
    parser.add_argument("--ceiling", type=float, default=4.0, help="GiB of memory that no step may exceed")
    parser.add_argument("--folder", help="where to work (about 800 bytes a pair)")
    parser.add_argument("--keep", action="store_true", help="leave the generated text and its preparation there")
    parser.add_argument("--random-ids", action="store_true", help="measure opening, planning and reading alone")
    parser.add_argument("--text", nargs=2, metavar=("SOURCE", "TARGET"), help="sentences to put the text together from")
    parser.add_argument("overrides", nargs="*", help="settings, such as data=wmt14_en_fr")
    return parser.parse_args()


def _config(folder: Path, overrides: list[str]) -> Config:
    languages = [f"data.{side}_lang={language}" for side, language in zip(("source", "target"), LANGUAGES, strict=True)]
    local = [f"data.hub_dataset={folder}/hub", "data.hub_config=generated", "data.check_counts=false"]
    return compose([*overrides, *languages, *local, f"paths.data={folder}"])


def _generate(arguments: argparse.Namespace, folder: Path) -> None:
    if arguments.text:
        pool = list(read_pairs(inputs(arguments.text, "train"), LANGUAGES))
    else:
        pool = grammar.generate(1, POOL, 1, 2)["train"]
    start = time.perf_counter()
    run_in_process(
        write_shards, folder / "hub" / "generated", arguments.pairs, pool
    )  # its memory is none of the chain's
    print(f"text generated in {time.perf_counter() - start:.0f} s (not part of the chain)", flush=True)


def _prepare(config: Config, meter: Meter, pairs: int) -> None:
    """Prepare the corpus; what it says tells when a step begins and ends."""

    def say(line: str) -> None:
        name, _, news = line.partition(": ")
        if news.startswith("done"):
            meter.end()
            print(meter.uses[-1].row(), flush=True)
        else:
            meter.begin(name, 0 if name.endswith(("valid", "test")) else pairs)

    print(HEAD)
    print("", *table(prepare(config, say)), sep="\n", flush=True)


def _read(config: Config, meter: Meter) -> None:
    """Open the store, plan an epoch, read batches as training does, and check all that was stored."""
    meter.begin("open")
    store = PairStore.open(config.data_folder, "train")
    meter.end()
    meter.begin("plan", len(store))
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    epoch = plan_epoch(lengths, config.training.batch_tokens, config.seed, 0)
    meter.end()
    print(f"\n{len(epoch):,} batches an epoch, of up to {config.training.batch_tokens:,} tokens a side")
    del epoch, lengths
    _read_batches(config, store, meter)
    meter.begin("verify", len(store))
    store.verify()
    meter.end()


def _read_batches(config: Config, store: PairStore, meter: Meter) -> None:
    tokens = config.training.batch_tokens
    stream = global_batches(
        store, batch_tokens=tokens, device_tokens=0, seed=config.seed, start=DataPosition(), rank=0, devices=1
    )
    with Prefetcher(stream) as batches:
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
    sys.exit(main())
