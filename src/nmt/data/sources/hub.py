"""Data sets of the Hugging Face Hub: snapshots at a revision, whole or not at all, with known checksums."""

import re
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import chain
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from nmt.config.data import DataConfig
from nmt.data.sources.files import SHARD_ENDINGS, SHARD_MIDDLES, kind_of, shards
from nmt.data.sources.source import Fingerprint, Pair, Source, split_names
from nmt.data.sources.tables import BATCH_ROWS, read_table
from nmt.errors import UserError
from nmt.storage.files import checksum, remove

NOT_REACHED = (
    "A copy in a folder is read with data.source=files data.train=[FOLDER] data.valid=[FOLDER] data.test=[FOLDER]. "
    "Without a network, set HF_HUB_OFFLINE=1 if the Hub's cache has it, or try experiment=demo."
)


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    paths = fetch(config, split_names(config, split, "a split"))
    sides, columns = config.languages, config.columns
    return chain.from_iterable(read_table(path, kind_of(path), sides, columns, _stream) for path in paths)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by data set and revision."""
    return {
        "dataset": config.hub_dataset,
        "config": config.hub_config,
        "revision": config.hub_revision,
        "splits": split_names(config, split, "a split"),
    }


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


def _all_shards(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the shards of some splits in a folder; if it has some but not all of the splits, refuse it."""
    found = {name: shards(folder, [name]) for name in names}
    if any(found.values()) and (missing := [name for name in names if not found[name]]):
        raise UserError(f"{folder} holds no shards of {missing[0]}: check the names of the splits.")
    return sorted(chain.from_iterable(found.values()))


SOURCE = Source(fingerprint, pairs, is_named=True)
