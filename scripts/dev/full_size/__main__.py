"""Prepare and read a generated corpus of full size; print the time and memory of each task.

    .venv/bin/python scripts/dev/full_size --pairs 4508785 --ceiling 4
    .venv/bin/python scripts/dev/full_size --pairs 40000000 --ceiling 7 data=wmt14_en_fr

The text combines sentences of the demo's grammar with four million invented rare words: about 25 words per side, with
the long tails of natural text. It is written as Parquet shards in the Hub's layout and prepared as WMT14 is. Linux
only.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow
import pyarrow.parquet

from nmt.commands.data import summary
from nmt.config.compose import compose
from nmt.config.tree import Config
from nmt.data.batches import Batching, plan_epoch
from nmt.data.loader import DataPosition, global_batches, prefetched
from nmt.data.prepare import prepare
from nmt.data.store import PairStore
from nmt.demo.source import draw

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.processes import cpu_seconds, family, own_share_of_memory

LANGUAGES = ("en", "de")
POOL = 20_000
"""Sentences of the grammar from which the text is combined."""
MEAN_WORDS, LOG_DEVIATION = 25, 0.6
"""Mean number of words per side, and the standard deviation of its logarithm."""
SYLLABLES = [a + b for a in ("b", "d", "fr", "g", "k", "l", "m", "st", "w") for b in ("a", "e", "in", "o", "ur")]
SHARD_PAIRS, CHUNK_PAIRS, ROW_GROUP_PAIRS = 1_500_000, 50_000, 1000
SCHEMA = pyarrow.schema({"translation": pyarrow.struct([(language, pyarrow.string()) for language in LANGUAGES])})
BATCHES = 300
STEP_SECONDS = 0.4
"""Time of a training step of the paper's base model on its eight GPUs."""
SAMPLING_SECONDS = 0.25
HEAD = f"{'task':<14}{'pairs':>12}{'seconds':>10}{'pairs/s':>12}{'pairs/CPU-s':>15}{'peak GiB':>10}"


def main() -> int:
    """Measure and print; return 1 if memory exceeded the ceiling."""
    parser = argparse.ArgumentParser(
        prog="full_size", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=4_508_785, help="size of the training split")
    parser.add_argument("--ceiling", type=float, default=4.0, help="GiB of memory that no task may exceed")
    parser.add_argument("--folder", help="folder for the files (about 800 bytes per pair)")
    parser.add_argument("overrides", nargs="*", help="settings, such as data=wmt14_en_fr")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="full-size-", dir=options.folder))
    source = ["data.source=files", *(f"data.{split}=[{folder}/shards]" for split in ("train", "valid", "test"))]
    languages = [f"data.{side}_lang={language}" for side, language in zip(("source", "target"), LANGUAGES, strict=True)]
    config = compose([*options.overrides, *languages, *source, f"paths.data={folder}"])
    try:
        writer = get_context("fork").Process(target=write_shards, args=(folder / "shards", options.pairs))
        writer.start()  # a process of its own, because its memory is not counted
        writer.join()
        meter = Meter()
        _prepare(config, meter, options.pairs)
        _read(config, meter)
    finally:
        shutil.rmtree(folder)
    peak = meter.highest / 2**30
    print(f"peak {peak:.2f} GiB, ceiling {options.ceiling:g} GiB: {'kept' if peak <= options.ceiling else 'EXCEEDED'}")
    return int(peak > options.ceiling)


class Meter(threading.Thread):
    """Measures the time and memory of this process and its descendants, one task after the other."""

    def __init__(self) -> None:
        """Start sampling, for as long as the process lives."""
        super().__init__(daemon=True)
        self.highest = self._peak = 0
        self._cpu = 0.0
        print(HEAD, flush=True)
        self.start()
        self.begin()

    def run(self) -> None:
        """Sample again and again."""
        while True:
            self._sample()
            time.sleep(SAMPLING_SECONDS)

    def _sample(self) -> None:
        memory, cpu = 0, 0.0
        for process in family(os.getpid()):
            with suppress(OSError, ValueError, IndexError):  # the process may end meanwhile
                memory += own_share_of_memory(process)
                cpu += cpu_seconds(process)
        self._cpu = max(self._cpu, cpu)
        self._peak, self.highest = max(self._peak, memory), max(self.highest, memory)

    def begin(self) -> None:
        """Begin a task."""
        self._sample()
        self._peak, self._began = 0, (time.perf_counter(), self._cpu)

    def end(self, name: str, pairs: int = 0) -> None:
        """Print a row about the task since `begin`, and begin the next; `pairs` is 0 if it has no rate."""
        self._sample()
        seconds, cpu = time.perf_counter() - self._began[0], self._cpu - self._began[1]
        rates = [f"{pairs / max(each, 0.001):,.0f}" if pairs else "" for each in (seconds, cpu)]
        row = f"{name:<14}{pairs or '':>12}{seconds:>10.2f}{rates[0]:>12}{rates[1]:>15}{self._peak / 2**30:>10.2f}"
        print(row, flush=True)
        self.begin()


def _prepare(config: Config, meter: Meter, pairs: int) -> None:
    """Prepare the corpus; its lines of progress show when a task ends, and the next one begins."""

    def say(line: str) -> None:
        name, _, message = line.partition(": ")
        if message.startswith("done"):
            meter.end(name, 0 if name.endswith(("valid", "test")) else pairs)

    start = time.perf_counter()
    manifest = prepare(config, say)
    print(f"prepared in {time.perf_counter() - start:.0f} s, fetching included", flush=True)
    print(*summary(manifest, config), sep="\n", flush=True)


def _read(config: Config, meter: Meter) -> None:
    """Open the store, plan an epoch, read batches as training does, and verify the checksums."""
    meter.begin()
    store, batching = PairStore.open(config.data_folder, "train"), Batching.of(config.training, config.seed)
    meter.end("open")
    epoch = plan_epoch(store.pair_lengths, batching, epoch=0)
    meter.end("plan", len(store))
    print(f"{len(epoch):,} batches per epoch, of up to {config.training.batch_tokens:,} tokens per side")
    del epoch
    stream = global_batches(store, batching, device_tokens=0, start=DataPosition(), rank=0, devices=1)
    with closing(prefetched(stream)) as batches:
        next(batches)  # waits for the plan
        meter.begin()
        pairs = sum(len(next(batches).micro_batches[0].sentences) for _ in range(BATCHES))
        meter.end("read batches", pairs)
        waits = []
        for _ in range(BATCHES // 10):
            time.sleep(STEP_SECONDS)
            start = time.perf_counter()
            next(batches)
            waits.append(1000 * (time.perf_counter() - start))
    print(f"between training steps of {STEP_SECONDS} s, waiting for a batch: {median(waits):.2f} ms (median)")
    meter.begin()
    store.verify()
    meter.end("verify", len(store))


def write_shards(folder: Path, pairs: int) -> None:
    """Write the shards of a training split with this many pairs, of a development split and of a test split."""
    random = np.random.default_rng(1)
    pool = [each.pair for each in draw(1, POOL, 1, 2)["train"]]
    rare = ["".join(word).capitalize() for word in product(SYLLABLES, repeat=4)]
    folder.mkdir(parents=True)
    for split, total in (("test", 3003), ("validation", 3000), ("train", pairs)):
        files = -(-total // SHARD_PAIRS)
        for number in range(files):
            size = min(total - number * SHARD_PAIRS, SHARD_PAIRS)
            path = folder / f"{split}-{number:05}-of-{files:05}.parquet"
            with pyarrow.parquet.ParquetWriter(path, SCHEMA) as file:
                for start in range(0, size, CHUNK_PAIRS):
                    file.write_table(_table(min(CHUNK_PAIRS, size - start), random, pool, rare), ROW_GROUP_PAIRS)


def _table(count: int, random: np.random.Generator, pool: list[tuple[str, str]], rare: list[str]) -> pyarrow.Table:
    """Return pairs that combine sentences of the pool with rare words, which are distributed by Zipf's law."""
    words = random.lognormal(np.log(MEAN_WORDS) - LOG_DEVIATION**2 / 2, LOG_DEVIATION, count)
    words_per_phrase = sum(len(source.split()) for source, _ in pool) / len(pool) + 1
    sizes = np.maximum(1, np.rint(words / words_per_phrase + random.uniform(-0.5, 0.5, count))).astype(np.int64)
    picks = random.integers(len(pool), size=int(sizes.sum())).tolist()
    ranks = (len(rare) ** random.random(len(picks))).astype(np.int64)
    chosen = [rare[rank] for rank in (ranks * 2_654_435_761 % len(rare)).tolist()]
    ends = sizes.cumsum().tolist()
    sides = []
    for side, mark in enumerate((":", "s")):
        phrases = [f"{word}{mark} {pool[pick][side]}" for word, pick in zip(chosen, picks, strict=True)]
        sides.append([" ".join(phrases[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)])
    rows = pyarrow.StructArray.from_arrays([pyarrow.array(side) for side in sides], LANGUAGES)
    return pyarrow.table({"translation": rows})


if __name__ == "__main__":
    sys.exit(main())
