"""The formats of files of parallel text, by the ending of their names."""

from collections.abc import Iterator
from pathlib import Path

from nmt.config.registry import imported
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.discovery import features
from nmt.errors import UserError
from nmt.feature import FileFormat
from nmt.text.lines import read_lines

COMPRESSED = (".gz", ".xz")
"""Endings of compressed files; they follow the ending of the format."""


def plain_text(path: Path, _: str) -> Iterator[str]:
    """Yield the lines of a file."""
    return read_lines(path)


TEXT = FileFormat("text", (".txt",), sentences=f"{__name__}:plain_text")
PARQUET = FileFormat("parquet", (".parquet",), pairs="nmt.data.sources.parquet_tables:pairs", shards=(".parquet",))


def formats() -> list[FileFormat]:
    """Return the formats of the core, then those of features."""
    return [TEXT, PARQUET, *(each for feature in features().values() for each in feature.file_formats)]


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of a compressed one."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def format_of(path: Path) -> FileFormat:
    """Return the format of a file, by the ending of its name; files of any unknown ending hold plain text."""
    suffix = uncompressed_name(path).suffix.lower()
    return next((each for each in formats() if suffix in each.endings), TEXT)


def shard_endings() -> list[str]:
    """Return the endings of the shards of a split in a folder, in the order in which they are looked for."""
    return [ending for each in formats() for ending in each.shards]


def pairs_in(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file that holds both sides."""
    found = format_of(path)
    if not found.pairs:
        raise UserError(f"{path} holds one side ({found.name}), but both are wanted.")
    pairs: Iterator[Pair] = imported(found.pairs)(path, languages, columns)
    return pairs


def sentences_in(path: Path, language: str) -> Iterator[str]:
    """Yield the sentences of a file that holds one side."""
    found = format_of(path)
    if not found.sentences:
        raise UserError(f"{path} holds both sides ({found.name}), but one is wanted.")
    sentences: Iterator[str] = imported(found.sentences)(path, language)
    return sentences
