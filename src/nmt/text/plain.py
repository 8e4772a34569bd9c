"""What counts when sentences are compared: their letters, without case.

White space, punctuation and digits do not count. Sentences without letters are equal if their characters are.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that mixes the bits of one sentence's hash before the other's is added."""


class _LettersAndSpaces(dict[int, int]):
    """Maps letters and the marks on them to themselves, and all other characters to a space."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LM" else ord(" ")
        return self[code]


_PLAIN = _LettersAndSpaces()
_PLAIN_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalpha() else ord(" ") for code in range(128)) + bytes(128)


def plain(text: str) -> str:
    """Return the letters of a text without case; each other character is a space."""
    if text.isascii():  # several times faster
        return text.encode().translate(_PLAIN_ASCII).decode()
    return text.casefold().translate(_PLAIN)


def sentence_digest(sentence: str) -> bytes:
    """Return the eight bytes of a sentence's hash, which is the same in all processes."""
    compared = plain(sentence).replace(" ", "") or f"\n{sentence.strip()}"
    return blake2b(compared.encode(errors="surrogatepass"), digest_size=8).digest()


def pair_hashes(pairs: Iterable[Sequence[str]]) -> Hashes:
    """Return a hash of the two sides of each pair."""
    digests = b"".join(sentence_digest(side) for pair in pairs for side in pair[:2])
    first, second = np.frombuffer(digests, np.uint64).reshape(-1, 2).T
    return first * PAIR_FACTOR + second
