"""The format of Parquet files. What reads them is imported with pyarrow when a file is read."""

from collections.abc import Iterator
from pathlib import Path

from nmt.data.sources.file_format import PairFormat
from nmt.data.sources.source import Columns, Languages, Pair


def pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file."""
    from nmt.data.sources import parquet_tables  # noqa: PLC0415 - training imports the formats, too

    return parquet_tables.pairs(path, languages, columns)


FORMAT = PairFormat("parquet", (".parquet",), pairs, (".parquet",))
