"""The words of a text as runs of words are compared, and hashes of them, which are the same in all processes."""

from functools import lru_cache

from nmt.text.plain import digest, plain
from nmt.text.words import words_between_spaces

KNOWN_WORDS = 1 << 18
"""Words whose hashes are kept."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case, punctuation and digits."""
    return words_between_spaces(plain(text))


@lru_cache(KNOWN_WORDS)
def word_hash(word: str) -> int:
    """Return a number of 64 bits for a word."""
    return int.from_bytes(digest(word), "little")
