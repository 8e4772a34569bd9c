"""Sentences and their constituency trees, from bracketed files such as the Penn Treebank's."""

import re
from collections.abc import Iterator
from glob import glob
from hashlib import sha256
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.sources.source import Fingerprint, Pair, Source, split_names
from nmt.errors import UserError
from nmt.parsing.linearise import tree_pair
from nmt.parsing.trees import clean, parse_trees
from nmt.storage.files import checksums
from nmt.text.lines import OPENERS, read_lines

ENDINGS = tuple(ending + packed for ending in (".mrg", ".trees", ".ptb") for packed in ("", *OPENERS))
"""Endings of the files that are read from a folder."""
_SECTIONS = re.compile(r"(.+):(\d+)(?:-(\d+))?")


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    for path in _inputs(config, split):
        for line, tree in parse_trees(read_lines(path), str(path)):
            cleaned = clean(tree)
            if cleaned is None:
                raise UserError(f"{path}, line {line}: a tree without words, only empty elements: remove it.")
            yield tree_pair(cleaned, keep_tags=config.pos_tags == "keep")


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the content of its files."""
    sums = checksums(_inputs(config, split))
    return {"trees": {"files": len(sums), "sha256": sha256("\n".join(sums).encode()).hexdigest()}}


def _inputs(config: DataConfig, split: str) -> list[Path]:
    names = split_names(config, split, "bracketed files")
    return [path for name in names for path in _files_of(name, f"data.{split}")]


def _files_of(name: str, setting: str) -> list[Path]:
    """Return the files that a name in the settings stands for: a file, a folder, a pattern or sections."""
    path, sections = expanded(name), _SECTIONS.fullmatch(name)
    if path.is_dir():
        return _files_in(path, setting)
    if sections:  # their numbers are written with as many digits as the first
        folder, first, last = sections.groups()
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise UserError(f"{setting}={name} has no sections: write the smaller number first, {last}-{first}.")
        folders = [expanded(folder) / f"{number:0{len(first)}}" for number in numbers]
        return [file for each in folders for file in _files_in(each, setting)]
    matches = map(Path, glob(str(path)))  # noqa: PTH207 (pathlib takes no absolute pattern)
    found = [path] if path.is_file() else sorted(each for each in matches if each.is_file())
    if not found:
        raise UserError(f"{name} does not exist, and no file matches it: check {setting}.")
    return found


def _files_in(folder: Path, setting: str) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.name.lower().endswith(ENDINGS) and path.is_file())
    if not found:
        raise UserError(f"{folder} has no files that end in {', '.join(ENDINGS)}: check {setting}.")
    return found


SOURCE = Source(fingerprint, pairs, is_named=True)
