"""Pairs from local files of any registered format, or from folders of shards in the Hub's layout."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.data.sources.formats import FORMATS, format_of, pairs_in, sentences_in, shard_endings
from nmt.data.sources.source import BY_LANGUAGE, Columns, Fingerprint, Languages, Pair, Source, languages, split_names
from nmt.errors import UserError
from nmt.storage.addresses import local_files
from nmt.storage.files import checksums

HUB_SPLITS = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
"""Names that the Hub's files may have for each split."""
SHARD_MIDDLES = ("-*", "/*", "")
"""Patterns between a split's name and the ending of its shards: train-00000.csv, train/0.csv, train.csv."""


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    names = split_names(config, split, "its files")
    return read_pairs(inputs(names, split), languages(config), columns_of(config, split))


def columns_of(config: DataConfig, split: str) -> Columns:
    """Return the columns of a split's tables; only training text is filtered by score."""
    return Columns(config.columns, config.score_column if split == "train" else "")


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the content of its files."""
    return fingerprint_of(inputs(split_names(config, split, "its files"), split))


def fingerprint_of(paths: Sequence[Path]) -> Fingerprint:
    """Identify files by format and checksum."""
    sums = checksums(paths)
    return {"files": [{"kind": format_of(path).name, "sha256": sum_} for path, sum_ in zip(paths, sums, strict=True)]}


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the references in the text files after the second one."""
    paths = inputs(split_names(config, split, "its files"), split)
    if not format_of(paths[0]).sentences:
        return []
    return [list(sentences_in(path, languages(config)[1])) for path in paths[2:]]


def inputs(names: Sequence[str], split: str) -> list[Path]:
    """Return the files of a split, with folders replaced by their shards, after a check that none is missing."""
    paths = list(chain.from_iterable(_files_of(name, split) for name in names))
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} does not exist or is not a file: check data.{split}.")
        if path.stat().st_size == 0:
            raise UserError(f"{path} is empty: check data.{split}.")
    found = [format_of(path) for path in paths]
    one_sided = [each for each in found if each.sentences]
    most = len(paths) if split in ("valid", "test") else 2  # further files are references
    if one_sided and not 2 <= len(paths) == len(one_sided) <= most:
        kinds = ", ".join(each.name for each in found)
        text = " or ".join(each.name for each in FORMATS if each.sentences)
        tables = ", ".join(each.endings[0] for each in FORMATS if each.pairs)
        raise UserError(
            f"data.{split} names {len(paths)} file(s) ({kinds}): give two of {text}, the source side first, or files "
            f"that hold both sides ({tables}, a folder in the Hub's layout)."
        )
    return paths


def _files_of(name: str, split: str) -> list[Path]:
    files = local_files(name, f"data.{split}")
    path = files[0]
    if len(files) > 1 or not path.is_dir():
        return files
    found = shards(path, HUB_SPLITS.get(split, (split,)))
    if not found:
        raise UserError(f"{path} holds no shards of {split}, such as {split}-00000-of-00001.parquet.")
    return found


def shards(folder: Path, splits: Sequence[str]) -> list[Path]:
    """Return the files of some splits in a folder of the Hub's layout, in order; refuse an incomplete set."""
    found: list[Path] = []
    for ending in shard_endings():
        patterns = [f"{split}{middle}{ending}" for split in splits for middle in SHARD_MIDDLES]
        found = found or sorted({path for pattern in patterns for path in folder.glob(pattern)})
    for path in found:
        match = re.fullmatch(r"(.*-)\d+(-of-(\d+)\.[a-z.]+)", path.name)
        numbers = range(int(match[3])) if match else ()
        expected = {path.with_name(f"{match[1]}{number:05}{match[2]}") for number in numbers} if match else set()
        if missing := sorted(expected - set(found)):
            raise UserError(f"{missing[0]} is missing, though {path.name} is there: fetch it too.")
    return found


def read_pairs(paths: Sequence[Path], sides: Languages, columns: Columns = BY_LANGUAGE) -> Iterator[Pair]:
    r"""Yield the pairs of the files that `inputs` returned; \n in a side is a line break in a table's cell.

    Args:
        paths: Two files of one side each, or files that hold both sides.
        sides: The languages of the two sides; columns of a table are named after them unless `columns` is given.
        columns: The columns that the user names.
    """
    if format_of(paths[0]).sentences:
        if columns.score:
            raise UserError(f"{paths[0]} has no columns, so data.score_column={columns.score} needs another format.")
        return _line_by_line(paths[0], paths[1], sides)
    return chain.from_iterable(pairs_in(path, sides, columns) for path in paths)


def _line_by_line(source: Path, target: Path, sides: Languages) -> Iterator[Pair]:
    """Yield pairs of sentences from two files; refuse files of different lengths."""
    sentences = [sentences_in(path, language) for path, language in zip((source, target), sides, strict=True)]
    count = 0
    while True:
        first, second = next(sentences[0], None), next(sentences[1], None)
        if first is None or second is None:
            break
        count += 1
        yield first, second
    counts = [
        count + (last is not None) + sum(1 for _ in rest) for last, rest in zip((first, second), sentences, strict=True)
    ]
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} sentences, but {target} has {counts[1]}: the two sides must match line by line."
        )


SOURCE = Source(fingerprint, pairs, further_references, settings=("train", "valid", "test"))
