"""The words of a text as they are compared, and hashes of them, which are the same in all processes."""

from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from nmt.text.words import WORD

Hashes = npt.NDArray[np.uint64]
KNOWN_WORDS = 1 << 18
"""Words whose hashes are kept."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    found: list[str] = WORD.findall(text.casefold())
    return found


def sentence_digest(text: str) -> bytes:
    """Return eight bytes that are equal for equal words; those of a text without words are of its characters."""
    return _digest(" ".join(words_of(text)) or f"\n{text.strip()}")


@lru_cache(KNOWN_WORDS)
def word_hash(word: str) -> int:
    """Return a number of 64 bits for a word."""
    return int.from_bytes(_digest(word), "little")


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()


def are_in(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is one of the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(hashes), dtype=bool)
    nearest = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[nearest] == hashes)
