"""Random numbers that depend only on (seed, epoch, sentence, kind of noise) and a counter, not on other sentences."""

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from nmt.data.batches import IntArray

Keys = npt.NDArray[np.uint64]

STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64, whose output function mixes the bits."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of some sentences in one epoch."""

    seed: int
    epoch: int
    sentences: IntArray
    """The number of each sentence in the corpus."""

    def keys(self, kind: str) -> Keys:
        """Return a key per sentence for a kind of noise."""
        (start,) = np.random.SeedSequence([self.seed, self.epoch, crc32(kind.encode())]).generate_state(1, np.uint64)
        return _mixed(start + self.sentences.astype(np.uint64) * STRIDE)


def uniform(keys: Keys, counters: IntArray) -> npt.NDArray[np.floating[Any]]:
    """Return a random number, at least 0 and below 1, for each key with its counter."""
    numbers = _mixed(keys + counters.astype(np.uint64) * STRIDE)
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(numbers: Keys) -> Keys:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
