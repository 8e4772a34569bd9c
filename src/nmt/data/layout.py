"""The names of the files of a prepared corpus, except those of its tokenizer (`nmt.text.tokenizer`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
"""The record of how a corpus was prepared."""


def text_names(split: str, languages: tuple[str, str]) -> list[str]:
    """Return the names of a split's text files, source side first."""
    return [f"{split}.{language}" for language in languages]


def column_name(split: str, column: str) -> str:
    """Return the name of the text file of a column."""
    return f"{split}.{column}"


def array_names(split: str, languages: tuple[str, str], columns: Sequence[str] = ()) -> list[str]:
    """Return the names of a split's arrays: tokens and offsets of the source side, of the target side, of columns."""
    files = [*text_names(split, languages), *(column_name(split, column) for column in columns)]
    return [f"{file}.{array}" for file in files for array in ("tokens", "offsets")]


def store_name(split: str) -> str:
    """Return the name of the file that describes a split's arrays."""
    return f"{split}.store.json"


@dataclass(frozen=True, slots=True)
class CorpusLayout:
    """The paths of a corpus in its folder."""

    folder: Path

    @property
    def manifest(self) -> Path:
        """The record of how the corpus was prepared."""
        return self.folder / MANIFEST

    def texts(self, split: str, languages: tuple[str, str]) -> tuple[Path, Path]:
        """Return a split's text files, source side first; each has one sentence per line."""
        source, target = text_names(split, languages)
        return self.folder / source, self.folder / target

    def store(self, split: str) -> Path:
        """Return the file that describes a split's arrays."""
        return self.folder / store_name(split)
