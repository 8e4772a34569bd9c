"""The form of a file of text, as `formats` registers it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.data.sources.source import Columns, Languages, Pair

COMPRESSED = (".gz", ".xz")
"""Endings of compressed files; they follow the ending of the format."""


@dataclass(frozen=True, slots=True)
class PairFormat:
    """A format whose files hold both sides."""

    name: str
    endings: tuple[str, ...]
    """Endings of file names, in lower case, without those of compression."""
    pairs: Callable[[Path, Languages, Columns], Iterator[Pair]]
    """Yield the pairs of a file, given the languages and the columns that the user names; scored if asked."""
    shard_endings: tuple[str, ...] = ()
    """Endings by which shards of a split are found in a folder, those of compression included."""


@dataclass(frozen=True, slots=True)
class SentenceFormat:
    """A format whose files hold one side."""

    name: str
    endings: tuple[str, ...]
    sentences: Callable[[Path, str], Iterator[str]]
    """Yield the sentences of a file, given its language."""


def also_compressed(*endings: str) -> tuple[str, ...]:
    """Return endings, each followed by the same with those of compression."""
    return tuple(ending + compressed for ending in endings for compressed in ("", *COMPRESSED))
