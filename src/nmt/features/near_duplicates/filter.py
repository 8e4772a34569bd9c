"""The filter, whose memory is bounded: it compares pairs with those whose bands it has not forgotten."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from nmt.config.schema import DataConfig
from nmt.data.filters import Digest, Filter
from nmt.data.sources.source import Pair
from nmt.features.near_duplicates.min_hash import BANDS, MinHash, Numbers
from nmt.features.near_duplicates.settings import NearDuplicateData

SLOTS = 1 << 27
"""Bands that are remembered, in 1 GiB: those of at least the last few million pairs."""


class BandTable:
    """Remembers bands in a table of fixed size, in which a new band may take the place of an older one."""

    def __init__(self, slots: int = SLOTS) -> None:
        """Take a number of slots that is a power of two. Memory is occupied as they are used."""
        self._table = np.zeros(slots, np.uint64).data
        self._mask = np.uint64(slots - 1)

    def keeps(self, bands: Numbers) -> list[bool]:
        """Return for the bands of each pair whether none is that of an earlier pair."""
        rows = bands.reshape(-1, BANDS)
        slots = (rows >> np.uint64(8) & self._mask).tolist()
        return [self._is_new(places, values) for places, values in zip(slots, rows.tolist(), strict=True)]

    def _is_new(self, places: list[int], values: list[int]) -> bool:
        is_new = all(self._table[place] != value for place, value in zip(places, values, strict=True))
        for place, value in zip(places, values, strict=True):
            self._table[place] = value
        return is_new


def _digest(config: DataConfig) -> Digest:
    min_hash = MinHash(cast(NearDuplicateData, config).near_duplicates)

    def bands(chunk: Sequence[Pair]) -> npt.NDArray[np.uint64]:
        return min_hash.bands([pair[:2] for pair in chunk])

    return bands


FILTER = Filter("near duplicates", "near_duplicates", lambda _: BandTable().keeps, slow=True, digest=_digest)
