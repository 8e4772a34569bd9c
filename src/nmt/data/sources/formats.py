"""The formats of files by the ending of their names.

To add a format, write a module with a `FORMAT` and add it to `FORMATS`.
"""

from pathlib import Path

from nmt.data.sources import comma_separated, json_lines, parquet, plain_text, sgm, tab_separated
from nmt.data.sources.file_format import COMPRESSED, PairFormat, SentenceFormat

FORMATS: tuple[PairFormat | SentenceFormat, ...] = (
    parquet.FORMAT,
    json_lines.FORMAT,
    comma_separated.FORMAT,
    tab_separated.FORMAT,
    sgm.FORMAT,
    plain_text.FORMAT,
)
"""All formats; a folder is searched for shards in this order. Files of any other ending hold plain text."""

_BY_ENDING = {ending: each for each in FORMATS for ending in each.endings}

SHARD_ENDINGS = tuple(ending for each in FORMATS if isinstance(each, PairFormat) for ending in each.shard_endings)
"""Endings of the shards of a split in a folder, in the order in which they are looked for."""


def format_of(path: Path) -> PairFormat | SentenceFormat:
    """Return the format of a file, by the ending of its name."""
    name = path.with_suffix("") if path.suffix in COMPRESSED else path
    return _BY_ENDING.get(name.suffix.lower(), plain_text.FORMAT)
