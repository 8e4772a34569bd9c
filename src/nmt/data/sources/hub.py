"""Data sets of the Hugging Face Hub: snapshots at a revision, whole or not at all, with known checksums and counts."""

import re
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import chain
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.sources.files import SHARD_ENDINGS, SHARD_MIDDLES, fingerprint_of, kind_of, shards
from nmt.data.sources.source import Fingerprint, Pair, Source, languages, split_names
from nmt.data.sources.tables import BATCH_ROWS, count_rows, read_table
from nmt.errors import UserError
from nmt.storage.files import checksum, remove

WMT14 = DataConfig()
"""The default data set, with its revision."""
KNOWN_PAIRS = {
    (WMT14.hub_dataset, WMT14.hub_revision, "de-en"): {"train": 4_508_785, "validation": 3000, "test": 3003},
    (WMT14.hub_dataset, WMT14.hub_revision, "fr-en"): {"train": 40_836_715, "validation": 3000, "test": 3003},
}
"""Pairs of each split, by data set, revision and configuration."""
NOT_REACHED = (
    "Go on without a network: prepare files of your own (data.source=files), point data.hub_dataset at a local copy, "
    "set HF_HUB_OFFLINE=1 if the Hub's cache has it, or try experiment=demo."
)


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    names = split_names(config, split, "a split")
    paths = _local_shards(config, names) if is_local(config) else fetch(config, names)
    _check_count(config, names, paths)
    sides, columns = languages(config), config.columns
    return chain.from_iterable(read_table(path, kind_of(path), sides, columns, _stream) for path in paths)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by data set and revision, or by the content of a local copy."""
    names = split_names(config, split, "a split")
    if is_local(config):
        return fingerprint_of(_local_shards(config, names))
    return {
        "dataset": config.hub_dataset,
        "config": config.hub_config,
        "revision": config.hub_revision,
        "splits": names,
    }


def is_local(config: DataConfig) -> bool:
    """Return whether the settings name a local folder in the Hub's layout."""
    return expanded(config.hub_dataset).is_dir()


def is_hub_id(config: DataConfig) -> bool:
    """Return whether the settings name a data set on the Hub, `owner/name` or `name`, and not a local folder."""
    return not is_local(config) and bool(re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", config.hub_dataset))


def fetch(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in the Hub's cache; fetch those that are missing."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import

    folder, where = PurePosixPath(config.hub_config), f"{config.hub_dataset} at {config.hub_revision}"
    patterns = [f"{folder / name}{middle}{end}" for name in names for middle in SHARD_MIDDLES for end in SHARD_ENDINGS]
    try:
        snapshot = snapshot_download(
            config.hub_dataset, repo_type="dataset", revision=config.hub_revision, allow_patterns=patterns
        )
    except Exception as error:  # of any kind: the network, the proxy and the client raise many
        reason = (" ".join(str(error).split()) or type(error).__name__)[:300]
        raise UserError(f"cannot fetch {where} from the Hub ({reason}). {NOT_REACHED}") from error
    found = _all_shards(Path(snapshot) / folder, names)
    if not found:
        raise UserError(
            f"{where} holds no shards {folder / names[0]}-*.parquet: check data.hub_config and the split's name."
        )
    if damaged := [path for path in found if _is_damaged(path)]:
        for path in damaged:
            remove(path.resolve())
            remove(path)
        raise UserError(f"{damaged[0].name} of {where} arrived damaged: run the same command again")
    return found


def _is_damaged(path: Path) -> bool:
    """Return whether a file differs from the checksum after which the Hub's client names it."""
    file = path.resolve()
    return bool(re.fullmatch(r"[0-9a-f]{64}", file.name)) and checksum(file) != file.name


def _stream(path: Path, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of a Parquet shard as tables of Arrow, as the Hub's own library reads them."""
    import pyarrow.parquet  # noqa: PLC0415 - slow to import
    from datasets import load_dataset  # noqa: PLC0415 - slow to import, and only this source needs it

    names = pyarrow.parquet.read_schema(path).names  # a column a.b may be inside a structure, which is read as a whole
    with TemporaryDirectory() as cache:  # in place of the library's own, which may be one that cannot be written
        rows = load_dataset(
            "parquet",
            data_files=[escape(str(path))],
            split="train",
            streaming=True,
            columns=[name for name in names if any(f"{column}.".startswith(f"{name}.") for column in columns)],
            batch_size=BATCH_ROWS,
            cache_dir=cache,
        )
        yield from rows.with_format("arrow").iter(batch_size=BATCH_ROWS)


def _local_shards(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in a local folder, with or without a folder per configuration."""
    root = expanded(config.hub_dataset)
    for folder in (root / config.hub_config, root, root / "data"):
        if found := _all_shards(folder, names):
            return found
    raise UserError(
        f"{root} holds no shards of {', '.join(names)}, such as "
        f"{config.hub_config}/{names[0]}-00000-of-00001.parquet: check data.hub_dataset and data.hub_config."
    )


def _all_shards(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in a folder; if it has some but not all of the splits, refuse it."""
    found = {name: shards(folder, [name]) for name in names}
    if any(found.values()) and (missing := [name for name in names if not found[name]]):
        raise UserError(f"{folder} holds no shards of {missing[0]}: check the names of the splits.")
    return sorted(chain.from_iterable(found.values()))


def _check_count(config: DataConfig, names: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse another number of pairs than known; a local copy is taken to be of the configured revision."""
    dataset = WMT14.hub_dataset if is_local(config) else config.hub_dataset
    known = KNOWN_PAIRS.get((dataset, config.hub_revision, config.hub_config), {})
    if not known.keys() >= {*names} or kind_of(paths[0]) != "parquet":
        return
    found, expected = sum(map(count_rows, paths)), sum(known[name] for name in names)
    if found != expected:
        raise UserError(
            f"{config.hub_dataset} has {found:,} pairs of {' and '.join(names)}, but {config.hub_config} at revision "
            f"{config.hub_revision} has {expected:,}: fetch it again, or give text of your own another "
            "data.hub_revision."
        )


SOURCE = Source(fingerprint, pairs, is_named=True)
