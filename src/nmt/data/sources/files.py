"""Pairs from local files, in a format that their endings name, or from folders of shards in the Hub's layout."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.data.sources.source import Fingerprint, Languages, Pair, Source, languages, split_names
from nmt.data.sources.tables import read_table
from nmt.errors import UserError
from nmt.storage.files import checksums
from nmt.storage.remote import local_files
from nmt.text.language import base_code
from nmt.text.lines import read_lines

COMPRESSED = (".gz", ".xz")
"""Endings of compressed files; they follow the ending of the format."""
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
SHARD_ENDINGS = (
    ".parquet",
    *(ending + packed for ending in (".jsonl", ".json", ".csv") for packed in ("", *COMPRESSED)),
)
"""Endings of shards in a folder, in the order in which they are looked for."""
SHARD_MIDDLES = ("-*", "/*", "")
"""Patterns between a split's name and the ending of its shards: train-00000.csv, train/0.csv, train.csv."""
HUB_SPLITS = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
"""Names that the Hub's files may have for each split."""
SGM_LANGUAGES = {"src": "srclang", "ref": "trglang", "tst": "trglang"}
"""The attribute that names the language, by the kind of set in an SGM file."""


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of a compressed one."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def kind_of(path: Path) -> str:
    """Return the format of a file, by the ending of its name."""
    return KINDS.get(uncompressed_name(path).suffix.lower(), "text")


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    return read_pairs(_paths(config, split), languages(config), config.columns)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the content of its files."""
    return fingerprint_of(_paths(config, split))


def fingerprint_of(paths: Sequence[Path]) -> Fingerprint:
    """Identify files by format and checksum."""
    sums = checksums(paths)
    return {"files": [{"kind": kind_of(path), "sha256": sum_} for path, sum_ in zip(paths, sums, strict=True)]}


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the references in the text files after the second one."""
    paths = _paths(config, split)
    if kind_of(paths[0]) not in ONE_SIDED:
        return []
    return [list(_sentences(path, config.target_lang)) for path in paths[2:]]


def _paths(config: DataConfig, split: str) -> list[Path]:
    return inputs(split_names(config, split, "its files"), split)


def inputs(names: Sequence[str], split: str) -> list[Path]:
    """Return the files of a split, with folders replaced by their shards, after a check that none is missing."""
    paths = list(chain.from_iterable(_files_of(name, split) for name in names))
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} does not exist or is not a file: check data.{split}.")
        if path.stat().st_size == 0:
            raise UserError(f"{path} is empty: check data.{split}.")
    kinds = [kind_of(path) for path in paths]
    one_sided = sum(kind in ONE_SIDED for kind in kinds)
    most = len(paths) if split in ("valid", "test") else 2  # further files are references
    if one_sided and not 2 <= len(paths) == one_sided <= most:
        raise UserError(
            f"data.{split} names {len(paths)} file(s) ({', '.join(kinds)}): give two of text or sgm, the source side "
            "first, or files that hold both sides (.parquet, .jsonl, .csv, .tsv, a folder in the Hub's layout)."
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
        if not (match := re.fullmatch(r"(.*-)\d+(-of-(\d+)\.[a-z.]+)", path.name)):
            continue
        expected = {path.with_name(f"{match[1]}{number:05}{match[2]}") for number in range(int(match[3]))}
        if missing := sorted(expected - set(found)):
            raise UserError(f"{missing[0]} is missing, though {path.name} is there: fetch it too.")
    return found


def read_pairs(paths: Sequence[Path], sides: Languages, columns: Sequence[str] = ()) -> Iterator[Pair]:
    """Yield the pairs of two files of one side each, or of files that hold both sides."""
    if kind_of(paths[0]) not in ONE_SIDED:
        return chain.from_iterable(read_table(path, kind_of(path), sides, columns) for path in paths)
    return _line_by_line(paths[0], paths[1], sides)


def _line_by_line(source: Path, target: Path, sides: Languages) -> Iterator[Pair]:
    """Yield pairs of sentences from two files; refuse files of different lengths."""
    found = zip_longest(_sentences(source, sides[0]), _sentences(target, sides[1]))
    for count, pair in enumerate(found):
        if None in pair:
            longer = count + 1 + sum(1 for _ in found)
            counts = (count, longer) if pair[0] is None else (longer, count)
            raise UserError(
                f"{source} has {counts[0]} sentences, but {target} has {counts[1]}: the two sides must match line by "
                "line."
            )
        yield pair


def _sentences(path: Path, language: str) -> Iterator[str]:
    """Yield the sentences of a file that holds one side."""
    return _segments(path, language) if kind_of(path) == "sgm" else read_lines(path)


def _segments(path: Path, language: str) -> Iterator[str]:
    """Yield the text between <seg> and </seg> in a file of WMT's test sets, unless it says another language."""
    text = "\n".join(read_lines(path))
    opening = re.search(r"<(src|ref|tst)set\b([^<>]*)>", text, re.IGNORECASE)
    key = SGM_LANGUAGES[opening[1].lower()] if opening else ""
    named = re.search(rf"\b{key}\s*=\s*[\"']?([\w-]+)", opening[2], re.IGNORECASE) if opening else None
    if named and len(named[1]) == 2 and named[1].lower() != base_code(language):  # "any" is no language
        raise UserError(f"{path} says it is in {named[1]}, but {language} is wanted: check the order of the two files.")
    # [^<>] rather than [^>]: otherwise a file full of "<seg" would take quadratic time
    before, *rest = re.split(r"<(/?)seg(?:\s[^<>]*)?>", text, flags=re.IGNORECASE)
    tags, texts = rest[0::2], rest[1::2]
    if not tags:
        raise UserError(f"{path} holds no <seg> lines: is it an sgm file?")
    if tags != ["", "/"] * (len(tags) // 2):
        wrong = next(index for index, tag in enumerate([*tags, "end"]) if tag != ("", "/")[index % 2])
        line = 1 + sum(each.count("\n") for each in (before, *texts[:wrong]))
        raise UserError(f"{path}, line {line}: a <seg> without its </seg>, or the reverse: correct it.")
    # numbers too long for a character become the replacement character
    segments = (re.sub(r"&#[0-9]{9,};?", "\ufffd", segment) for segment in texts[0::2])
    return (" ".join(html.unescape(segment).split()) for segment in segments)


SOURCE = Source(fingerprint, pairs, further_references, settings=("train", "valid", "test"))
