"""What counts when sentences are compared: their letters, without case.

White space, punctuation and digits do not count. Sentences without letters are equal if their characters are.
"""

import unicodedata
from collections.abc import Iterable
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


def sentence_hashes(sentences: Iterable[str]) -> Hashes:
    """Return a number of 64 bits for each sentence, which is the same in all processes."""
    return np.frombuffer(b"".join(map(sentence_digest, sentences)), np.uint64)


def sentence_digest(sentence: str) -> bytes:
    """Return the eight bytes of a sentence's hash."""
    return digest(plain(sentence).replace(" ", "") or f"\n{sentence.strip()}")


def digest(text: str) -> bytes:
    """Return eight bytes for a text as it stands."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()


def pair_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return a hash for each pair of two sentences, given their hashes."""
    return first * PAIR_FACTOR + second
