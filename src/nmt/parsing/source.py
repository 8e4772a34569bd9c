"""Sentences and their constituency trees, from bracketed files such as the Penn Treebank's."""

import re
from collections.abc import Iterator, Sequence
from glob import glob
from hashlib import sha256
from itertools import chain
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.sources.source import Fingerprint, Pair, Source, split_names
from nmt.errors import UserError
from nmt.parsing.linearise import tree_pair
from nmt.parsing.trees import clean, read_trees
from nmt.storage.files import checksums
from nmt.text.lines import OPENERS

ENDINGS = tuple(ending + packed for ending in (".mrg", ".trees", ".ptb") for packed in ("", *OPENERS))
"""Endings of the files that are read from a folder."""
_SECTIONS = re.compile(r"(.+):(\d+)(?:-(\d+))?")


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    return chain.from_iterable(_file_pairs(path, config) for path in _inputs(config, split))


def _file_pairs(path: Path, config: DataConfig) -> Iterator[Pair]:
    keep_tags = config.pos_tags == "keep"
    for line, tree in read_trees(path):
        cleaned = clean(tree)
        if cleaned is None:
            raise UserError(f"{path}, line {line}: a tree without words, only empty elements: remove it.")
        yield tree_pair(cleaned, keep_tags=keep_tags)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the content of its files."""
    sums = checksums(_inputs(config, split))
    return {"trees": {"files": len(sums), "sha256": sha256("\n".join(sums).encode()).hexdigest()}}


def _inputs(config: DataConfig, split: str) -> list[Path]:
    names = split_names(config, split, "bracketed files")
    return list(chain.from_iterable(_files_of(name, f"data.{split}") for name in names))


def _files_of(name: str, setting: str) -> Sequence[Path]:
    """Return the files that a name in the settings stands for: a file, a folder, a pattern or sections."""
    path = expanded(name)
    if path.is_dir():
        return _files_in(path)
    if sections := _SECTIONS.fullmatch(name):
        folder, first, last = sections.groups()
        return list(chain.from_iterable(map(_files_in, _section_folders(folder, first, last, setting))))
    matches = glob(str(path))  # noqa: PTH207 (pathlib takes no absolute pattern)
    found = [path] if path.is_file() else sorted(each for each in map(Path, matches) if each.is_file())
    if not found:
        raise UserError(f"{name} does not exist, and no file matches it: check {setting}.")
    return found


def _section_folders(folder: str, first: str, last: str | None, setting: str) -> Iterator[Path]:
    """Yield the folders of sections: the numbers from first to last, written with as many digits as the first."""
    numbers = range(int(first), int(last or first) + 1)
    given = f"{setting}={folder}:{first}{'-' if last else ''}{last or ''}"
    if not numbers:
        raise UserError(f"{given} has no sections: write the smaller number first, {last}-{first}.")
    for number in numbers:
        section = expanded(folder) / f"{number:0{len(first)}}"
        if not section.is_dir():
            raise UserError(f"{section} is not a folder: check {given}.")
        yield section


def _files_in(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.name.lower().endswith(ENDINGS) and path.is_file())
    if not found:
        raise UserError(f"{folder} has no bracketed files: their names must end in {', '.join(ENDINGS)}.")
    return found


SOURCE = Source(fingerprint, pairs, settings=("train", "valid", "test"))
