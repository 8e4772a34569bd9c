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
from nmt.data.sources import files
from nmt.data.sources.files import SHARD_ENDINGS, SHARD_MIDDLES, kind_of, read_pairs, shards
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
    """Yield the pairs of a split, which may also be local files: a test set of your own, for example."""
    names = split_names(config, split, "a split")
    if _are_files(names):
        return files.pairs(config, split)
    paths = local_shards(config, names) if is_local(config) else fetch(config, names)
    _check_count(config, names, paths)
    sides, columns = languages(config), config.columns
    if kind_of(paths[0]) != "parquet":
        return read_pairs(paths, sides, columns)
    return chain.from_iterable(read_table(path, "parquet", sides, columns, _stream) for path in paths)


def _stream(path: Path, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of a Parquet shard as tables of Arrow, as the Hub's own library reads them."""
    from datasets import load_dataset  # noqa: PLC0415 - slow to import, and only this source needs it

    with TemporaryDirectory() as cache:  # in place of the library's own, which may be one that cannot be written
        rows = load_dataset(
            "parquet",
            data_files=[escape(str(path))],
            split="train",
            streaming=True,
            columns=[*dict.fromkeys(name.partition(".")[0] for name in columns)],
            batch_size=BATCH_ROWS,
            cache_dir=cache,
        )
        yield from rows.with_format("arrow").iter(batch_size=BATCH_ROWS)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by data set and revision, or by the content of local files."""
    names = split_names(config, split, "a split")
    if _are_files(names):
        return files.fingerprint(config, split)
    if is_local(config):
        return files.fingerprint_of(local_shards(config, names))
    return {
        "dataset": config.hub_dataset,
        "config": config.hub_config,
        "revision": config.hub_revision,
        "splits": names,
    }


def _are_files(names: Sequence[str]) -> bool:
    """Return whether names look like those of files rather than of the Hub's splits."""
    return any("/" in name or "." in name for name in names)


def is_local(config: DataConfig) -> bool:
    """Return whether the settings name a local folder in the Hub's layout."""
    return expanded(config.hub_dataset).is_dir()


def is_hub_id(config: DataConfig) -> bool:
    """Return whether the settings name a data set on the Hub, `owner/name` or `name`, and not a local folder."""
    return not is_local(config) and bool(re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", config.hub_dataset))


def local_shards(config: DataConfig, names: Sequence[str]) -> list[Path]:
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
    if (found := shards(folder, names)) and (missing := [name for name in names if not shards(folder, [name])]):
        raise UserError(f"{folder} holds no shards of {missing[0]}: check the names of the splits.")
    return found


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


def fetch(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in the Hub's cache; fetch those that are missing."""
    try:
        found = _snapshot(config, names, offline=True)
    except (OSError, ValueError, UserError):  # not in the cache, or not all of it
        found = []
    is_whole = all("-of-" in path.name or path.name.partition(".")[0] in names for path in found)
    if not found or not is_whole or _damaged(found):
        try:
            found = _snapshot(config, names, offline=False)
        except UserError:
            raise
        except Exception as error:  # of any kind: the network, the proxy and the client raise many
            reason = (" ".join(str(error).split()) or type(error).__name__)[:300]
            where = f"{config.hub_dataset} at {config.hub_revision}"
            raise UserError(f"cannot fetch {where} from the Hub ({reason}). {NOT_REACHED}") from error
    if not found:
        raise UserError(
            f"{config.hub_dataset} at {config.hub_revision} holds no shards {config.hub_config}/{names[0]}-*.parquet: "
            "check data.hub_config and the split's name."
        )
    if damaged := _damaged(found):
        raise UserError(f"{', '.join(damaged)} of {config.hub_dataset} arrived damaged: run the same command again")
    return found


def _snapshot(config: DataConfig, names: Sequence[str], *, offline: bool) -> list[Path]:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import

    folder = PurePosixPath(config.hub_config)
    for endings in (SHARD_ENDINGS[:1], SHARD_ENDINGS[1:]):  # other formats only if there is no Parquet
        snapshot = snapshot_download(
            config.hub_dataset,
            repo_type="dataset",
            revision=config.hub_revision,
            allow_patterns=[
                f"{folder / name}{middle}{end}" for name in names for middle in SHARD_MIDDLES for end in endings
            ],
            local_files_only=offline,
        )
        if found := _all_shards(Path(snapshot) / folder, names):
            return found
    return []


def _damaged(paths: Sequence[Path]) -> list[str]:
    """Remove shards that differ from the checksums after which the Hub's client names them; return their names."""
    damaged = []
    for path in paths:
        file = path.resolve()
        if re.fullmatch(r"[0-9a-f]{64}", file.name) and checksum(file) != file.name:
            damaged.append(path.name)
            remove(file)
            remove(path)
    return damaged


SOURCE = Source(fingerprint, pairs, settings=("hub_dataset", "hub_config", "hub_revision", "train", "valid", "test"))
