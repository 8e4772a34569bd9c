"""Pairs from local files, in a format that their endings name, or from folders of shards in the Hub's layout."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded, is_address
from nmt.data.sources.source import Fingerprint, Languages, Pair, Source, split_names
from nmt.data.sources.tables import read_table
from nmt.errors import UserError
from nmt.storage.files import checksums
from nmt.storage.remote import local_files
from nmt.text.lines import OPENERS, read_lines

KINDS = {
    ".parquet": "parquet",
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), "json"),
    ".csv": "csv",
    ".tsv": "tsv",
    **dict.fromkeys((".sgm", ".sgml"), "sgm"),
}
"""Formats by the ending of file names; files of any other ending hold plain text."""
ONE_SIDED = ("text", "sgm")
"""Formats in which a file holds one side."""
SHARD_ENDINGS = (".parquet", *(ending + packed for ending in (".jsonl", ".json", ".csv") for packed in ("", *OPENERS)))
"""Endings of shards in a folder, in the order in which they are looked for."""
SHARD_MIDDLES = ("-*", "/*", "")
"""Patterns between a split's name and the ending of its shards: train-00000.csv, train/0.csv, train.csv."""
HUB_SPLITS = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
"""Names that the Hub's files may have for each split."""
LANGUAGE = re.compile(r"(?:^|[./_-])([a-z]{2}|[a-z]{2,3}[-_][A-Z0-9][A-Za-z0-9]+)(?:\.txt)?$")
"""A language of two letters, or one with a region or script, at the end of a name: train.en, news-pt_BR.txt."""


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    return read_pairs(_paths(config, split), config.languages, config.columns)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the formats and checksums of its files."""
    paths = _paths(config, split)
    sums = checksums(paths)
    return {"files": [{"kind": kind_of(path), "sha256": sum_} for path, sum_ in zip(paths, sums, strict=True)]}


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the references in the text files after the second one."""
    paths = _paths(config, split)
    return [list(_sentences(path)) for path in paths[2:]] if kind_of(paths[0]) in ONE_SIDED else []


def named_languages(config: DataConfig) -> Languages | None:
    """Return the languages with which the names of two files of one side end; None if they say none."""
    for names in (config.train, config.valid, config.test):
        if config.source == "files" and len(names) == 2 and all(map(has_one_side, names)):
            found = [LANGUAGE.search(str(uncompressed_name(Path(name)))) for name in names]
            if found[0] and found[1] and found[0][1] != found[1][1]:
                return found[0][1], found[1][1]
            return None
    return None


def has_one_side(name: str) -> bool:
    """Return whether a name of text is that of a file with one side, in a format without columns."""
    return kind_of(Path(name)) in ONE_SIDED and (is_address(name) or not expanded(name).is_dir())


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of a compressed one."""
    return path.with_suffix("") if path.suffix.lower() in OPENERS else path


def kind_of(path: Path) -> str:
    """Return the format of a file, by the ending of its name."""
    return KINDS.get(uncompressed_name(path).suffix.lower(), "text")


def _paths(config: DataConfig, split: str) -> list[Path]:
    return inputs(split_names(config, split, "its files"), split)


def inputs(names: Sequence[str], split: str) -> list[Path]:
    """Return the files of a split, with folders replaced by their shards, after a check that none is missing."""
    paths = list(chain.from_iterable(_files_of(name, split) for name in names))
    for path in paths:
        if not path.is_file() or path.stat().st_size == 0:
            problem = "is empty" if path.is_file() else "does not exist or is not a file"
            raise UserError(f"{path} {problem}: check data.{split}.")
    one_sided = sum(kind_of(path) in ONE_SIDED for path in paths)
    most = 2 if split == "train" else len(paths)  # further files are references
    if one_sided and not 2 <= len(paths) == one_sided <= most:
        raise UserError(
            f"data.{split} names {len(paths)} file(s): give two of text or sgm, the source side first, or files that "
            "hold both sides (.parquet, .jsonl, .csv, .tsv, a folder in the Hub's layout)."
        )
    return paths


def _files_of(name: str, split: str) -> list[Path]:
    files = local_files(name, f"data.{split}")
    if len(files) > 1 or not files[0].is_dir():
        return files
    if not (found := shards(files[0], HUB_SPLITS[split])):
        raise UserError(f"{files[0]} holds no shards of {split}, such as {split}-00000-of-00001.parquet.")
    return found


def shards(folder: Path, splits: Sequence[str]) -> list[Path]:
    """Return the files of some splits in a folder of the Hub's layout, in order; refuse an incomplete set."""
    found: list[Path] = []
    for ending in SHARD_ENDINGS:
        patterns = [f"{split}{middle}{ending}" for split in splits for middle in SHARD_MIDDLES]
        found = found or sorted({path for pattern in patterns for path in folder.glob(pattern)})
    for path in found:
        if not (match := re.fullmatch(r"(.*-)(\d+)(-of-(\d+)\.[a-z.]+)", path.name)):
            continue
        digits = len(match[2])
        expected = {path.with_name(f"{match[1]}{number:0{digits}}{match[3]}") for number in range(int(match[4]))}
        if missing := sorted(expected - set(found)):
            raise UserError(f"{missing[0]} is missing, though {path.name} is there: fetch it too.")
    return found


def read_pairs(paths: Sequence[Path], sides: Languages, columns: Sequence[str] = ()) -> Iterator[Pair]:
    """Yield the pairs of two files of one side each, or of files that hold both sides."""
    if kind_of(paths[0]) in ONE_SIDED:
        return _line_by_line(paths[0], paths[1])
    return chain.from_iterable(read_table(path, kind_of(path), sides, columns) for path in paths)


def _line_by_line(source: Path, target: Path) -> Iterator[Pair]:
    """Yield pairs of sentences from two files; refuse files of different lengths."""
    for count, pair in enumerate(zip_longest(_sentences(source), _sentences(target))):
        if None in pair:
            short, long = (source, target) if pair[0] is None else (target, source)
            raise UserError(
                f"{short} has {count} sentences, but {long} has more: the two sides must match line by line."
            )
        yield pair


def _sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a file that holds one side: its lines, or what is between <seg> and </seg>."""
    if kind_of(path) != "sgm":
        yield from read_lines(path)
        return
    text = "\n".join(read_lines(path))
    found = re.findall(r"<seg\b[^<>]*>([^<]*)</seg>", text, re.IGNORECASE)
    if not found or len(found) != text.lower().count("<seg"):
        raise UserError(f"{path} has no <seg>, or one without its </seg>: is it a whole sgm file?")
    yield from (" ".join(html.unescape(segment).split()) for segment in found)


SOURCE = Source(fingerprint, pairs, further_references, is_named=True)
