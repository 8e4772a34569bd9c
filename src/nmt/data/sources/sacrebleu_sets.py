"""The test sets of sacreBLEU by name, from its cache folder ($SACREBLEU, else ~/.sacrebleu) or its servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config.data import DataConfig
from nmt.data.sources.source import Fingerprint, Pair, Source, split_names
from nmt.errors import UserError, nearest
from nmt.storage.files import checksums
from nmt.text.lines import read_lines

PREFIX = "sacrebleu:"
"""What precedes the name of a test set, as in sacrebleu:wmt14/full."""


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the sentences and the first reference."""
    source, reference, *_ = map(read_lines, _files(config, split))
    return zip(source, reference, strict=True)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a test set by its name and the content of its files."""
    return {"sacrebleu": _name(config, split), "sha256": checksums(_files(config, split))}


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the sentences of each reference after the first one."""
    return [list(read_lines(file)) for file in _files(config, split)[2:]]


def _name(config: DataConfig, split: str) -> str:
    name, *others = split_names(config, split, "a test set")
    if others:
        raise UserError(f"data.{split}=[{name},{','.join(others)}]: a test set of sacreBLEU stands alone")
    return name.removeprefix(PREFIX)


def _files(config: DataConfig, split: str) -> list[Path]:
    """Return the files of the sentences and of each reference; sacreBLEU downloads them if they are missing."""
    from sacrebleu.dataset import DATASETS  # noqa: PLC0415 - slow to import

    name, pair = _name(config, split), "-".join(config.languages)
    if name not in DATASETS:
        raise UserError(f"data.{split}: sacreBLEU has no test set {name}; {nearest(name, sorted(DATASETS))}")
    dataset: Any = DATASETS[name]
    if pair not in dataset.langpairs:
        raise UserError(f"data.{split}: {name} has no {pair}, only {', '.join(sorted(dataset.langpairs))}")
    try:
        return list(map(Path, [dataset.get_source_file(pair), *dataset.get_reference_files(pair)]))
    except (OSError, SystemExit) as error:
        raise UserError(
            f"sacreBLEU cannot download its test set {name} ({error}): run `sacrebleu -t {name} -l {pair} --echo src` "
            "on a machine with a network, and copy ~/.sacrebleu from there"
        ) from error


SOURCE = Source(fingerprint, pairs, further_references)
