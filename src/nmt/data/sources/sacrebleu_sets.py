"""The test sets of sacreBLEU by name, from its cache folder ($SACREBLEU, else ~/.sacrebleu) or its servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config.data import DataConfig
from nmt.data.sources.source import Fingerprint, Pair, Source, languages, split_names
from nmt.errors import UserError, nearest
from nmt.storage.files import checksums
from nmt.text.lines import read_lines

PREFIX = "sacrebleu:"
"""What precedes the name of a test set, as in sacrebleu:wmt14/full."""


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the sentences and the first reference."""
    dataset, pair = _dataset(config, split)
    source, references = _files(dataset, pair)
    return zip(_lines(source), _lines(references[0]), strict=True)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a test set by its name and the content of its files."""
    dataset, pair = _dataset(config, split)
    source, references = _files(dataset, pair)
    return {"sacrebleu": dataset.name, "sha256": checksums([source, *references])}


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the sentences of each reference after the first one."""
    _, references = _files(*_dataset(config, split))
    return [_lines(file) for file in references[1:]]


def _dataset(config: DataConfig, split: str) -> tuple[Any, str]:
    """Return the test set that the settings name, and its language pair."""
    from sacrebleu.dataset import DATASETS  # noqa: PLC0415 - slow to import

    names = split_names(config, split, "a test set")
    if len(names) > 1:
        raise UserError(f"data.{split}=[{','.join(names)}]: a test set of sacreBLEU stands alone")
    name, pair = names[0].removeprefix(PREFIX), "-".join(languages(config))
    if name not in DATASETS:
        raise UserError(f"data.{split}: sacreBLEU has no test set {name}; {nearest(name, sorted(DATASETS))}")
    dataset = DATASETS[name]
    if pair not in dataset.langpairs:
        raise UserError(f"data.{split}: {name} has no {pair}, only {', '.join(sorted(dataset.langpairs))}")
    return dataset, pair


def _files(dataset: Any, pair: str) -> tuple[Path, list[Path]]:
    """Return the files of the sentences and of each reference; sacreBLEU downloads them if they are missing."""
    from sacrebleu.utils import SACREBLEU_DIR  # noqa: PLC0415 - slow to import

    try:
        source, references = dataset.get_source_file(pair), dataset.get_reference_files(pair)
    except (OSError, SystemExit) as error:
        raise UserError(
            f"sacreBLEU cannot download its test set {dataset.name} ({error}): run `sacrebleu -t {dataset.name} "
            f"-l {pair} --echo src` on a machine with a network, and copy {SACREBLEU_DIR}/{dataset.name} from there"
        ) from error
    return Path(source), [Path(file) for file in references]


def _lines(path: Path | str) -> list[str]:
    return list(read_lines(Path(path)))


SOURCE = Source(fingerprint, pairs, further_references, may_download=True)
