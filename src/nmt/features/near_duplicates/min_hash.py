"""MinHash: numbers that are equal for two texts with a probability that is their similarity.

The similarity of two sets is the number of their common elements divided by that of all their elements. For a random
order of all possible elements, the smallest element of both sets is the same with this probability. A *band* is a hash
of several such smallest elements, so similar texts share a band often, and others almost never.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from nmt.text.words import WORD

Numbers = npt.NDArray[np.uint64]

BANDS = 8
"""Bands of a text: it is a near-duplicate if one of them is that of an earlier text."""
MAX_ROWS = 32
"""The most smallest elements in a band, because their computation takes time; more than half are found then."""
SEED = 1
DIGITS = re.compile(r"\d+")
KNOWN_WORDS = 1 << 18
"""Words whose hashes are kept."""
MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Odd factors of the mixing function of SplitMix64."""
NEIGHBOUR = np.uint64(0x9E3779B97F4A7C15)
"""An odd factor that makes the order of two neighbouring words matter."""


def rows_per_band(similarity: float) -> int:
    """Return how many smallest elements a band has, so that half of the texts of this similarity share a band.

    With r elements per band, the probability is 1 - (1 - similarity^r)^BANDS.
    """
    if similarity == 1:
        return MAX_ROWS
    return min(MAX_ROWS, round(math.log(1 - 0.5 ** (1 / BANDS)) / math.log(similarity)))


class MinHash:
    """Computes the bands of texts."""

    def __init__(self, similarity: float) -> None:
        """Look for texts of at least about this similarity."""
        self._rows = rows_per_band(similarity)
        random = np.random.default_rng(SEED)
        self._factors = random.integers(0, 2**63, (BANDS, self._rows, 2), np.uint64) * np.uint64(2) + np.uint64(1)

    def bands(self, texts: Sequence[Sequence[str]]) -> Numbers:
        """Return the bands of each text, which consists of several sides, as a row."""
        words = [_words(sides) for sides in texts]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        if not len(lengths):
            return np.zeros((0, BANDS), np.uint64)
        singles = _mixed(np.fromiter((word for each in words for word in each), np.uint64, int(lengths.sum())))
        starts = np.cumsum(lengths) - lengths
        neighbours = _mixed(singles * NEIGHBOUR + np.roll(singles, -1))
        last = starts + lengths - 1
        neighbours[last] = singles[last]  # the last word has no neighbour
        found = np.zeros((len(texts), BANDS), np.uint64)
        for band, rows in enumerate(self._factors):
            for factor, shift in rows:
                smallest = np.minimum(
                    np.minimum.reduceat(singles * factor + shift, starts),
                    np.minimum.reduceat(neighbours * factor + shift, starts),
                )
                found[:, band] = _mixed(found[:, band] * NEIGHBOUR + smallest)
        return found | np.uint64(1)  # never 0, which stands for nothing


def _words(sides: Sequence[str]) -> list[int]:
    """Return hashes of the words of a text; those of each side are others, and follow a mark."""
    return [_hash(f"{number} {word}") for number, side in enumerate(sides) for word in ("", *_plain(side))]


def _plain(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation, and with the same number for all numbers."""
    found: list[str] = WORD.findall(DIGITS.sub("0", text.casefold()))
    return found


@lru_cache(KNOWN_WORDS)
def _hash(word: str) -> int:
    content = word.encode(errors="surrogatepass")
    return crc32(content) << 32 | crc32(content, 1)


def _mixed(numbers: Numbers) -> Numbers:
    """Return numbers whose every bit depends on all bits of the given ones."""
    for factor in MIX:
        numbers = (numbers ^ (numbers >> np.uint64(31))) * factor
    return numbers ^ (numbers >> np.uint64(31))
