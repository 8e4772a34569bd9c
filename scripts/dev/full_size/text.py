"""Generate text whose lengths and vocabulary have the long tails of natural text."""

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from nmt.data.sources.source import Pair
from nmt.data.store import writing

LANGUAGES = ("en", "de")
MEAN_WORDS, LOG_DEVIATION = 25, 0.6
"""Mean number of words per side, and the standard deviation of its logarithm."""
MEAN_PIECES = 32
"""Mean number of word pieces per side."""
SYLLABLES = [a + b for a in ("b", "d", "fr", "g", "k", "l", "m", "st", "w") for b in ("a", "e", "in", "o", "ur")]
SHARD_PAIRS, CHUNK_PAIRS, ROW_GROUP_PAIRS = 1_500_000, 50_000, 1000
SCHEMA = pyarrow.schema({"translation": pyarrow.struct([(language, pyarrow.string()) for language in LANGUAGES])})


class Author:
    """Combines given pairs with four million rare words, which are distributed by Zipf's law."""

    def __init__(self, pool: list[Pair]) -> None:
        """Use the sentences of `pool`."""
        self._random = np.random.default_rng(1)
        self._pool = pool
        self._rare = ["".join(word).capitalize() for word in product(SYLLABLES, repeat=4)]
        self._mean = sum(len(source.split()) for source, _ in pool) / len(pool) + 1

    def table(self, count: int) -> pyarrow.Table:
        """Return a table of this many pairs."""
        words = _lengths(self._random, MEAN_WORDS, count)
        sentences = np.maximum(1, np.rint(words / self._mean + self._random.uniform(-0.5, 0.5, count))).astype(int)
        total = int(sentences.sum())
        picks = self._random.integers(len(self._pool), size=total).tolist()
        ranks = (len(self._rare) ** self._random.random(total)).astype(np.int64)
        rare = (ranks * 2_654_435_761 % len(self._rare)).tolist()
        ends = sentences.cumsum().tolist()
        sides = []
        for side, mark in enumerate((":", "s")):
            phrases = [
                f"{self._rare[word]}{mark} {self._pool[pick][side]}" for word, pick in zip(rare, picks, strict=True)
            ]
            sides.append([" ".join(phrases[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)])
        rows = pyarrow.StructArray.from_arrays([pyarrow.array(side) for side in sides], LANGUAGES)
        return pyarrow.table({"translation": rows})


def write_shards(folder: Path, pairs: int, pool: list[Pair]) -> None:
    """Write the shards of a training split with this many pairs, of a development split and of a test split."""
    author = Author(pool)
    folder.mkdir(parents=True)
    for split, total in (("test", 3003), ("validation", 3000), ("train", pairs)):
        files = -(-total // SHARD_PAIRS)
        for number in range(files):
            size = min(total - number * SHARD_PAIRS, SHARD_PAIRS)
            path = folder / f"{split}-{number:05}-of-{files:05}.parquet"
            with pyarrow.parquet.ParquetWriter(path, SCHEMA) as file:
                for start in range(0, size, CHUNK_PAIRS):
                    file.write_table(author.table(min(CHUNK_PAIRS, size - start)), ROW_GROUP_PAIRS)


def write_random_store(folder: Path, pairs: int, vocabulary: int, max_pieces: int) -> None:
    """Write a training store of random ids with the lengths of text."""
    random = np.random.default_rng(1)
    folder.mkdir(parents=True)
    with writing(folder, "train", LANGUAGES, vocabulary) as writer:
        for start in range(0, pairs, 10 * CHUNK_PAIRS):
            source = _lengths(random, MEAN_PIECES, min(10 * CHUNK_PAIRS, pairs - start))
            target = source * random.lognormal(0, 0.2, len(source))
            lengths = [np.clip(side, 1, max_pieces).astype(np.int32) for side in (source, target)]
            ids = [random.integers(4, vocabulary, int(side.sum()), dtype=np.uint16) for side in lengths]
            writer.append(ids[0], lengths[0], ids[1], lengths[1])


def _lengths(random: np.random.Generator, mean: float, count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return random.lognormal(np.log(mean) - LOG_DEVIATION**2 / 2, LOG_DEVIATION, count)
