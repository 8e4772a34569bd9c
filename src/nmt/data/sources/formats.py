"""The formats of files of parallel text, by the ending of their names."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.data.sources import comma_separated, json_lines, sgm, tab_separated
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.errors import UserError
from nmt.text.lines import read_lines

COMPRESSED = (".gz", ".xz")
"""Endings of compressed files; they follow the ending of the format."""


class FileFormat(NamedTuple):
    """A format of files of parallel text, which hold one side or both."""

    name: str
    endings: tuple[str, ...]
    """Endings of file names, in lower case; those of compressed files may follow."""
    pairs: Callable[[Path, Languages, Columns], Iterator[Pair]] | None = None
    """Yield the pairs of a file, given the languages and the columns that the user names; None if a file holds one
    side."""
    sentences: Callable[[Path, str], Iterator[str]] | None = None
    """Yield the sentences of a file that holds one side, given its language."""
    shards: tuple[str, ...] = ()
    """Endings by which shards of a split are found in a folder, those of compressed files included."""


def _parquet_pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    from nmt.data.sources.parquet_tables import pairs  # noqa: PLC0415 - slow to import

    return pairs(path, languages, columns)


def plain_text(path: Path, _: str) -> Iterator[str]:
    """Yield the lines of a file."""
    return read_lines(path)


TEXT = FileFormat("text", (".txt",), sentences=plain_text)
PARQUET = FileFormat("parquet", (".parquet",), pairs=_parquet_pairs, shards=(".parquet",))
FORMATS = (
    TEXT,
    PARQUET,
    FileFormat(
        "json",
        (".jsonl", ".json", ".ndjson"),
        pairs=json_lines.pairs,
        shards=(".jsonl", ".jsonl.gz", ".jsonl.xz", ".json", ".json.gz", ".json.xz"),
    ),
    FileFormat("csv", (".csv",), pairs=comma_separated.pairs, shards=(".csv", ".csv.gz", ".csv.xz")),
    FileFormat("tsv", (".tsv",), pairs=tab_separated.pairs),
    FileFormat("sgm", (".sgm", ".sgml"), sentences=sgm.sentences),
)
"""All formats; shards of a split are looked for in this order."""


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of a compressed one."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def format_of(path: Path) -> FileFormat:
    """Return the format of a file, by the ending of its name; files of any unknown ending hold plain text."""
    suffix = uncompressed_name(path).suffix.lower()
    return next((each for each in FORMATS if suffix in each.endings), TEXT)


def shard_endings() -> list[str]:
    """Return the endings of the shards of a split in a folder, in the order in which they are looked for."""
    return [ending for each in FORMATS for ending in each.shards]


def pairs_in(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file that holds both sides."""
    found = format_of(path)
    if not found.pairs:
        raise UserError(f"{path} holds one side ({found.name}), but both are wanted.")
    return found.pairs(path, languages, columns)


def sentences_in(path: Path, language: str) -> Iterator[str]:
    """Yield the sentences of a file that holds one side."""
    found = format_of(path)
    if not found.sentences:
        raise UserError(f"{path} holds both sides ({found.name}), but one is wanted.")
    return found.sentences(path, language)
