"""Plain text: one sentence per line."""

from collections.abc import Iterator
from pathlib import Path

from nmt.data.sources.file_format import SentenceFormat
from nmt.text.lines import read_lines


def sentences(path: Path, _: str) -> Iterator[str]:
    """Yield the lines of a file."""
    return read_lines(path)


FORMAT = SentenceFormat("text", (".txt",), sentences)
