"""Data sets of the Hugging Face Hub: tables, fetched whole or not at all, counted, and read as a stream."""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from nmt.config.schema import DataConfig
from nmt.data.sources.files import TABLES, Languages, Pair, kind, read_pairs, rows, shards, table_pairs
from nmt.errors import UserError
from nmt.storage.files import checksum, remove

REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"
KNOWN_PAIRS = {
    ("wmt/wmt14", REVISION, "de-en"): {"train": 4_508_785, "validation": 3000, "test": 3003},
    ("wmt/wmt14", REVISION, "fr-en"): {"train": 40_836_715, "validation": 3000, "test": 3003},
}
"""Pairs of each split, by data set, revision and configuration."""
WAITS = (2, 10, 30)
"""Seconds before the second, third and fourth try."""
REACH_SECONDS = 10
"""How long to wait for the Hub's first answer."""
READ_ROWS = 10_000
NOT_REACHED = (
    "Go on without a network: prepare files of your own (data.source=files), point data.hub_dataset at a local copy, "
    "set HF_HUB_OFFLINE=1 where the Hub's cache has it, or try experiment=demo."
)


def is_local(config: DataConfig) -> bool:
    """Whether the settings name a local folder in the Hub's layout."""
    return Path(config.hub_dataset).is_dir()


def is_hub_id(config: DataConfig) -> bool:
    """Return whether the settings name a data set on the Hub, `owner/name` or `name`, and not a local folder."""
    return not is_local(config) and bool(re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", config.hub_dataset))


def local_shards(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Shards of splits in a local folder; their configuration's folder may be left out."""
    root = Path(config.hub_dataset)
    for folder in (root / config.hub_config, root, root / "data"):
        if found := shards(folder, names):
            return found
    raise UserError(
        f"{root} holds no shards of {', '.join(names)}, such as "
        f"{config.hub_config}/{names[0]}-00000-of-00001.parquet: check data.hub_dataset and data.hub_config."
    )


def known_pairs(config: DataConfig, names: Sequence[str]) -> int | None:
    """How many pairs splits must have, where that is known; a local copy is of the revision that the settings name."""
    for (dataset, revision, folder), counts in KNOWN_PAIRS.items():
        same = dataset == config.hub_dataset or is_local(config)
        if same and (revision, folder) == (config.hub_revision, config.hub_config) and counts.keys() >= set(names):
            return sum(counts[name] for name in names)
    return None


def read(config: DataConfig, names: Sequence[str], languages: Languages) -> Iterator[Pair]:
    """Pairs of splits, one batch of rows after the other; all shards are there and counted before the first."""
    paths = local_shards(config, names) if is_local(config) else fetch(config, names)
    if kind(paths[0]) != "parquet":
        return read_pairs(paths, languages, config.columns)
    found, known = sum(map(rows, paths)), known_pairs(config, names)
    if config.check_counts and known not in (None, found):
        raise UserError(
            f"{config.hub_dataset} has {found:,} pairs of {' and '.join(names)}, but {config.hub_config} at revision "
            f"{config.hub_revision} has {known:,}: fetch it again, or take it as it is with data.check_counts=false."
        )
    return _stream(paths, languages, config)


def fetch(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Shards of splits in the Hub's cache, brought there where they are not; what came whole is not fetched again."""
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
        except Exception as error:  # whatever the network, the proxy or the client may raise: none of it is ours
            reason = " ".join(str(error).split()) or type(error).__name__
            if wait is None or not _may_pass(error, reached):
                where = f"{config.hub_dataset} at {config.hub_revision}"
                raise UserError(f"cannot fetch {where} from the Hub ({reason[:300]}). {NOT_REACHED}") from error
            print(f"the Hub: {reason[:300]}; trying again in {wait} s", file=sys.stderr, flush=True)
            time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _may_pass(error: Exception, reached: bool) -> bool:
    """Whether another try may do better: the Hub is busy or broken, or was lost after it had answered."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return reached if status is None else status == 429 or status >= 500


def _cached(config: DataConfig, names: Sequence[str]) -> list[Path]:
    """Shards that the cache has whole, without asking the Hub; none if one is missing."""
    if not re.fullmatch(r"[0-9a-f]{40}", config.hub_revision):
        return []
    try:
        found = _snapshot(config, names, offline=True)
    except (OSError, ValueError, UserError):
        return []
    counted = all("-of-" in path.name or path.name.partition(".")[0] in names for path in found)
    return found if counted and not _damaged(config, found, {}) else []


def _listed(config: DataConfig) -> dict[str, str]:
    """Ask the Hub for the data set's files and their checksums; fails at once where there is no network."""
    from huggingface_hub import HfApi  # noqa: PLC0415 (comes with datasets; slow to import)

    info = HfApi().dataset_info(
        config.hub_dataset, revision=config.hub_revision, timeout=REACH_SECONDS, files_metadata=True
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
        raise OSError(f"{', '.join(damaged)} came damaged: the checksum is not the Hub's")
    return found


def _snapshot(config: DataConfig, names: Sequence[str], *, offline: bool) -> list[Path]:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 (comes with datasets; slow to import)

    folder = PurePosixPath(config.hub_config)
    found: list[Path] = []
    for tables in (TABLES[:1], TABLES[1:]):  # Parquet if there is any
        patterns = [f"{folder / name}{end}{table}" for name in names for end in ("-*", "/*", "") for table in tables]
        snapshot = snapshot_download(
            config.hub_dataset,
            repo_type="dataset",
            revision=config.hub_revision,
            allow_patterns=patterns,
            local_files_only=offline,
        )
        found = found or shards(Path(snapshot) / folder, names)
        if found:
            break
    return found


def _damaged(config: DataConfig, paths: Sequence[Path], sums: dict[str, str]) -> list[str]:
    """Names of the shards that differ from their checksums; they are removed, so that they are fetched again."""
    damaged = []
    for path in paths:
        name = path.as_posix().split(f"/{config.hub_revision}/", 1)[-1]
        wanted = sums.get(name) or _sum_in_name(path)
        if wanted and checksum(path) != wanted:
            damaged.append(name)
            _remove(path)
    return damaged


def _sum_in_name(path: Path) -> str:
    """The checksum of a cached file, after which the Hub's client names it."""
    name = path.readlink().name if path.is_symlink() else ""
    return name if re.fullmatch(r"[0-9a-f]{64}", name) else ""


def _remove(path: Path) -> None:
    """Remove a file with the links that lead to it."""
    while path.is_symlink():
        target = path.parent / path.readlink()
        remove(path)
        path = target
    remove(path)


def _stream(paths: list[Path], languages: Languages, config: DataConfig) -> Iterator[Pair]:
    from datasets import load_dataset  # noqa: PLC0415 (slow to import, and only this source needs it)
    from datasets.utils import logging  # noqa: PLC0415

    logging.set_verbosity(logging.CRITICAL)  # what goes wrong is said below, in one line

    files = [str(path) for path in paths]
    table = load_dataset("parquet", data_files=files, split="train", streaming=True, batch_size=READ_ROWS)
    try:
        for batch in table.with_format("arrow").iter(batch_size=READ_ROWS):
            yield from table_pairs(batch, languages, config.columns, config.hub_dataset)
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UserError(
            f"a shard of {config.hub_dataset} is damaged ({reason}): delete it and fetch it again."
        ) from error
