"""Data sets of the Hugging Face Hub: tables that are fetched whole or not at all, counted, and read as a stream."""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.sources import files
from nmt.data.sources.files import SHARD_MIDDLES, read_pairs, shards
from nmt.data.sources.formats import PARQUET, format_of, shard_endings
from nmt.data.sources.source import Columns, Fingerprint, Languages, Pair, Source, languages, split_names
from nmt.errors import UserError
from nmt.storage.files import checksum, remove

WMT14 = DataConfig()
"""The default data set, with its revision."""
KNOWN_PAIRS = {
    (WMT14.hub_dataset, WMT14.hub_revision, "de-en"): {"train": 4_508_785, "validation": 3000, "test": 3003},
    (WMT14.hub_dataset, WMT14.hub_revision, "fr-en"): {"train": 40_836_715, "validation": 3000, "test": 3003},
}
"""Pairs of each split, by data set, revision and configuration."""
WAITS = (2, 10, 30)
"""Seconds before the second, third and fourth attempt."""
TIMEOUT_SECONDS = 10
"""The longest wait for the Hub's first answer."""
READ_ROWS = 10_000
"""Rows read together."""
NOT_REACHED = (
    "Go on without a network: prepare files of your own (data.source=files), point data.hub_dataset at a local copy, "
    "set HF_HUB_OFFLINE=1 if the Hub's cache has it, or try experiment=demo."
)


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split, which may also be local files: a test set of your own, for example."""
    names = split_names(config, split, "a split")
    if _are_files(names):
        return files.pairs(config, split)
    return read(config, names, languages(config), files.columns_of(config, split))


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
        if found := shards(folder, names):
            _check_each(folder, names)
            return found
    raise UserError(
        f"{root} holds no shards of {', '.join(names)}, such as "
        f"{config.hub_config}/{names[0]}-00000-of-00001.parquet: check data.hub_dataset and data.hub_config."
    )


def _check_each(folder: Path, names: Sequence[str]) -> None:
    """Refuse splits of which one has no shards in a folder: the others alone would be less text than was named."""
    if missing := [name for name in names if not shards(folder, [name])]:
        raise UserError(f"{folder} holds no shards of {missing[0]}: check the names of the splits.")


def known_pairs(config: DataConfig, names: Sequence[str]) -> int | None:
    """Return how many pairs some splits must have, or None; a local copy is taken to be of the configured revision."""
    for (dataset, revision, folder), counts in KNOWN_PAIRS.items():
        same = dataset == config.hub_dataset or is_local(config)
        if same and (revision, folder) == (config.hub_revision, config.hub_config) and counts.keys() >= set(names):
            return sum(counts[name] for name in names)
    return None


def read(config: DataConfig, names: Sequence[str], sides: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of some splits, after a check that all shards are there and have the known number of pairs."""
    paths = local_shards(config, names) if is_local(config) else fetch(config, names)
    if format_of(paths[0]) is not PARQUET:
        return read_pairs(paths, sides, columns)
    from nmt.data.sources.parquet_tables import count_rows  # noqa: PLC0415 - slow to import

    found, known = sum(map(count_rows, paths)), known_pairs(config, names)
    if known not in (None, found):
        raise UserError(
            f"{config.hub_dataset} has {found:,} pairs of {' and '.join(names)}, but {config.hub_config} at revision "
            f"{config.hub_revision} has {known:,}: fetch it again, or give text of your own another data.hub_revision."
        )
    return _stream(paths, sides, columns, config.hub_dataset)


def fetch(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in the Hub's cache; fetch those that are missing."""
    if cached := _cached(config, names):
        return cached
    for wait in (*WAITS, None):
        reached = False
        try:
            sums = _listed(config)
            reached = True
            return _fetched(config, names, sums)
        except UserError:
            raise
        except Exception as error:  # of any kind: the network, the proxy and the client raise many
            reason = " ".join(str(error).split()) or type(error).__name__
            if wait is None or not _is_temporary(error, reached):
                where = f"{config.hub_dataset} at {config.hub_revision}"
                raise UserError(f"cannot fetch {where} from the Hub ({reason[:300]}). {NOT_REACHED}") from error
            print(f"the Hub: {reason[:300]}; trying again in {wait} s", file=sys.stderr, flush=True)
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _is_temporary(error: Exception, reached: bool) -> bool:
    """Return whether another attempt may succeed: the Hub is busy or broken, or was lost after an answer."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return reached if status is None else status == 429 or status >= 500


def _cached(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Return the shards if the cache has all of them, without asking the Hub."""
    if not re.fullmatch(r"[0-9a-f]{40}", config.hub_revision):
        return []
    try:
        found = _snapshot(config, names, offline=True)
    except (OSError, ValueError, UserError):
        return []
    is_complete = all("-of-" in path.name or path.name.partition(".")[0] in names for path in found)
    return found if is_complete and not _damaged(config, found, {}) else []


def _listed(config: DataConfig) -> dict[str, str]:
    """Ask the Hub for the checksums of the data set's files; fail immediately if there is no network."""
    from huggingface_hub import HfApi  # noqa: PLC0415 (comes with datasets; slow to import)

    info = HfApi().dataset_info(
        config.hub_dataset, revision=config.hub_revision, timeout=TIMEOUT_SECONDS, files_metadata=True
    )
    return {file.rfilename: file.lfs.sha256 for file in info.siblings or () if file.lfs}


def _fetched(config: DataConfig, names: Sequence[str], sums: dict[str, str]) -> list[Path]:
    found = _snapshot(config, names, offline=False)
    if not found:
        raise UserError(
            f"{config.hub_dataset} at {config.hub_revision} holds no shards {config.hub_config}/{names[0]}-*.parquet: "
            "check data.hub_config and the split's name."
        )
    if damaged := _damaged(config, found, sums):
        raise OSError(f"{', '.join(damaged)} arrived damaged: the checksum is not the Hub's")
    return found


def _snapshot(config: DataConfig, names: Sequence[str], *, offline: bool) -> list[Path]:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 (comes with datasets; slow to import)

    folder = PurePosixPath(config.hub_config)
    found: list[Path] = []
    others = tuple(ending for ending in shard_endings() if ending not in PARQUET.shards)
    for endings in (PARQUET.shards, others):  # other formats only if there is no Parquet
        patterns = [
            f"{folder / name}{middle}{ending}" for name in names for middle in SHARD_MIDDLES for ending in endings
        ]
        snapshot = snapshot_download(
            config.hub_dataset,
            repo_type="dataset",
            revision=config.hub_revision,
            allow_patterns=patterns,
            local_files_only=offline,
        )
        if found := shards(Path(snapshot) / folder, names):
            _check_each(Path(snapshot) / folder, names)
            break
    return found


def _damaged(config: DataConfig, paths: Sequence[Path], sums: dict[str, str]) -> list[str]:
    """Remove shards that differ from their checksums, so that they are fetched again; return their names."""
    damaged = []
    for path in paths:
        name = path.as_posix().split(f"/{config.hub_revision}/", 1)[-1]
        wanted = sums.get(name) or _checksum_in_name(path)
        if wanted and checksum(path) != wanted:
            damaged.append(name)
            _remove(path)
    return damaged


def _checksum_in_name(path: Path) -> str:
    """Return the checksum after which the Hub's client names a cached file; empty if there is none."""
    name = path.readlink().name if path.is_symlink() else ""
    return name if re.fullmatch(r"[0-9a-f]{64}", name) else ""


def _remove(path: Path) -> None:
    """Remove a file and the links that lead to it."""
    while path.is_symlink():
        target = path.parent / path.readlink()
        remove(path)
        path = target
    remove(path)


def _stream(paths: list[Path], sides: Languages, columns: Columns, name: str) -> Iterator[Pair]:
    """Yield the pairs of Parquet shards, batch by batch of rows."""
    from datasets import load_dataset  # noqa: PLC0415 (slow to import, and only this source needs it)
    from datasets.utils import logging  # noqa: PLC0415

    from nmt.data.sources.parquet_tables import check_columns, table_pairs  # noqa: PLC0415 - slow to import

    logging.set_verbosity(logging.CRITICAL)  # errors are reported below, in one line
    for path in paths:
        check_columns(path, sides, columns)
    patterns = [escape(str(path)) for path in paths]
    try:
        with TemporaryDirectory() as cache:  # in place of the library's own, which may be one that cannot be written
            table = load_dataset(
                "parquet", data_files=patterns, split="train", streaming=True, batch_size=READ_ROWS, cache_dir=cache
            )
            for batch in table.with_format("arrow").iter(batch_size=READ_ROWS):
                yield from table_pairs(batch, sides, columns, name)
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UserError(f"a shard of {name} is damaged ({reason}): delete it and fetch it again.") from error


SOURCE = Source(fingerprint, pairs, settings=("hub_dataset", "hub_config", "hub_revision", "train", "valid", "test"))
