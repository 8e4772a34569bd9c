"""Generated text with the long tails of natural text, in its lengths and in its vocabulary."""

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from nmt.data.sources.source import Pair
from nmt.data.store import writing

LANGUAGES = ("en", "de")
WORDS, SPREAD = 25, 0.6
"""Mean words of a side, and the standard deviation of their logarithm."""
PIECES = 32
"""Mean word pieces of such a side."""
SYLLABLES = [a + b for a in ("b", "d", "fr", "g", "k", "l", "m", "st", "w") for b in ("a", "e", "in", "o", "ur")]
SHARD, CHUNK, ROW_GROUP = 1_500_000, 50_000, 1000
SCHEMA = pyarrow.schema({"translation": pyarrow.struct([(language, pyarrow.string()) for language in LANGUAGES])})


class Author:
    """Puts pairs together from given ones and from rare words, four million of them, spread as Zipf's law says."""

    def __init__(self, pool: list[Pair]) -> None:
        """Take sentences from `pool`."""
        self._random = np.random.default_rng(1)
        self._pool = pool
        self._rare = ["".join(word).capitalize() for word in product(SYLLABLES, repeat=4)]
        self._mean = sum(len(source.split()) for source, _ in pool) / len(pool) + 1

    def table(self, count: int) -> pyarrow.Table:
        """Write so many pairs."""
        words = _lengths(self._random, WORDS, count)
        parts = np.maximum(1, np.rint(words / self._mean + self._random.uniform(-0.5, 0.5, count))).astype(int)
        total = int(parts.sum())
        picks = self._random.integers(len(self._pool), size=total).tolist()
        ranks = (len(self._rare) ** self._random.random(total)).astype(np.int64)
        rare = (ranks * 2_654_435_761 % len(self._rare)).tolist()
        ends = parts.cumsum().tolist()
        sides = []
        for side, mark in enumerate((":", "s")):
            said = [
                f"{self._rare[word]}{mark} {self._pool[pick][side]}" for word, pick in zip(rare, picks, strict=True)
            ]
            sides.append([" ".join(said[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)])
        rows = pyarrow.StructArray.from_arrays([pyarrow.array(side) for side in sides], LANGUAGES)
        return pyarrow.table({"translation": rows})


def write_shards(folder: Path, pairs: int, pool: list[Pair]) -> None:
    """Write the shards of a training split of so many pairs, and those of a development and a test split."""
    author = Author(pool)
    folder.mkdir(parents=True)
    for split, total in (("test", 3003), ("validation", 3000), ("train", pairs)):
        files = -(-total // SHARD)
        for number in range(files):
            size = min(total - number * SHARD, SHARD)
            path = folder / f"{split}-{number:05}-of-{files:05}.parquet"
            with pyarrow.parquet.ParquetWriter(path, SCHEMA) as file:
                for start in range(0, size, CHUNK):
                    file.write_table(author.table(min(CHUNK, size - start)), ROW_GROUP)


def write_random_store(folder: Path, pairs: int, vocabulary: int, longest: int) -> None:
    """Write a training store of random ids whose lengths are those of text."""
    random = np.random.default_rng(1)
    folder.mkdir(parents=True)
    with writing(folder, "train", LANGUAGES, vocabulary) as writer:
        for start in range(0, pairs, 10 * CHUNK):
            source = _lengths(random, PIECES, min(10 * CHUNK, pairs - start))
            target = source * random.lognormal(0, 0.2, len(source))
            lengths = [np.clip(side, 1, longest).astype(np.int32) for side in (source, target)]
            ids = [random.integers(4, vocabulary, int(side.sum()), dtype=np.uint16) for side in lengths]
            writer.append(ids[0], lengths[0], ids[1], lengths[1])


def _lengths(random: np.random.Generator, mean: float, count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return random.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD, count)
