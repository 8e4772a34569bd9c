"""The names of the files of a prepared corpus, except those of its tokenizer (`nmt.text.tokenizer`)."""

from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
"""The record of how a corpus was prepared."""


def text_names(split: str, languages: tuple[str, str]) -> list[str]:
    """Return the names of a split's text files, source side first."""
    return [f"{split}.{language}" for language in languages]


def alignments_name(split: str) -> str:
    """Return the name of the file with the word alignments of a split."""
    return f"{split}.alignments"


def array_names(split: str, languages: tuple[str, str], *, aligned: bool = False) -> list[str]:
    """Return the names of a split's arrays: tokens and offsets of the source side, then of the target side.

    If the split is `aligned`, those of its links follow.
    """
    files = [*text_names(split, languages), *([alignments_name(split)] if aligned else [])]
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
