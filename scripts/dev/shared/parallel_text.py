"""Parallel text in the folders that tools are given: files such as train.en, val.de or test2016.en.xz."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.storage.files import write_text
from nmt.text.lines import read_lines

LANGUAGES = ("en", "de")
SPLITS = {"train": "train", "valid": "val", "test": "test"}
"""The splits, and how the names of their files begin."""


def named_folder(text: str) -> tuple[str, Path]:
    """Return the name and the folder of an argument NAME:FOLDER."""
    name, colon, folder = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text} must be a name and a folder: NAME:FOLDER")
    return name, Path(folder)


def read_split(folder: Path, split: str, languages: Sequence[str] = LANGUAGES) -> list[tuple[str, ...]]:
    """Return the pairs of a split."""
    return list(zip(*(read_lines(_find(folder, split, language)) for language in languages), strict=True))


def write_pairs(
    pairs: Sequence[tuple[str, ...]], file_of: Callable[[str], Path], languages: Sequence[str] = LANGUAGES
) -> None:
    """Write both sides of some pairs, each to the file of its language."""
    for language, lines in zip(languages, zip(*pairs, strict=True), strict=True):
        write_text(file_of(language), "".join(f"{line}\n" for line in lines))


def _find(folder: Path, split: str, language: str) -> Path:
    found = sorted(folder.glob(f"{SPLITS[split]}*.{language}*"))
    return found[0] if found else sys.exit(f"{folder} has no file {SPLITS[split]}*.{language}")
