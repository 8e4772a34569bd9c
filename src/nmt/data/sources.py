"""Where the pairs come from: the Hub, files, or the embedded grammar, behind one pair of functions."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from nmt.config.schema import DataConfig
from nmt.data.readers import Languages, Pair, inputs, kind, read_pairs, shards, table_pairs
from nmt.errors import UserError
from nmt.files import checksums

DEMO_SIZES = {"train": 30_000, "valid": 500, "test": 1000}
READ_ROWS = 10_000
NOT_REACHED = (
    "Go on without a network: prepare files of your own (data.source=files), point data.hub_dataset at a local copy, "
    "set HF_HUB_OFFLINE=1 where the Hub's cache has it, or try experiment=demo."
)


def splits(config: DataConfig) -> list[str]:
    """Names of a source's splits, the small ones first, so that their mistakes show at once."""
    return ["test", "unseen", "valid", "train"] if config.source == "demo" else ["test", "valid", "train"]


def fingerprint(config: DataConfig, seed: int, split: str) -> dict[str, Any]:
    """What a split's text depends on: equal fingerprints, equal text."""
    names = _names(config, split)
    if config.source == "demo":
        from nmt.data import demo  # noqa: PLC0415 (only this source needs it)

        return {"demo": demo.fingerprint(), "seed": seed, "sizes": DEMO_SIZES}
    if config.source == "hub" and not Path(config.hub_dataset).is_dir():
        return {
            "dataset": config.hub_dataset,
            "config": config.hub_config,
            "revision": config.hub_revision,
            "splits": names,
        }
    paths = _local_shards(config, split) if config.source == "hub" else inputs(names, split)
    sums = checksums(paths)
    return {"files": [{"kind": kind(path), "sha256": sum_} for path, sum_ in zip(paths, sums, strict=True)]}


def pairs(config: DataConfig, seed: int, split: str) -> Iterator[Pair]:
    """The pairs of a split, source side first."""
    languages = (config.source_lang, config.target_lang)
    if config.source == "demo":
        if languages not in (("en", "de"), ("de", "en")):
            raise UserError(f"the demo corpus is English and German, not {languages[0]} and {languages[1]}.")
        english_first = languages[0] == "en"
        return (pair if english_first else pair[::-1] for pair in _demo(seed)[split])
    if config.source == "files":
        return read_pairs(inputs(_names(config, split), split), languages)
    local = Path(config.hub_dataset).is_dir()
    return _stream(_local_shards(config, split) if local else _download(config, split), languages, config.hub_dataset)


def _names(config: DataConfig, split: str) -> list[str]:
    """Return the Hub splits or files that the settings name for a split."""
    if config.source == "demo":
        return [split]
    names = {"train": config.train, "valid": config.valid, "test": config.test}[split]
    if not names:
        raise UserError(f"data.{split} is empty: name {'a split' if config.source == 'hub' else 'its files'}.")
    return names


@lru_cache(maxsize=1)
def _demo(seed: int) -> dict[str, list[Pair]]:
    from nmt.data import demo  # noqa: PLC0415 (only this source needs it)

    return demo.generate(seed, **DEMO_SIZES)


def _local_shards(config: DataConfig, split: str) -> list[Path]:
    """Shards in a local folder of the Hub's layout; their configuration's folder may be left out."""
    root = Path(config.hub_dataset)
    names = _names(config, split)
    for folder in (root / config.hub_config, root, root / "data"):
        if found := shards(folder, names):
            return found
    raise UserError(
        f"{root} holds no Parquet shards of {', '.join(names)}, such as "
        f"{config.hub_config}/{names[0]}-00000-of-00001.parquet: check data.hub_dataset and data.hub_config."
    )


def _download(config: DataConfig, split: str) -> list[Path]:
    """Fetch a split's shards into the Hub's cache, going on where an earlier try broke off."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 (comes with datasets; slow to import)

    names = _names(config, split)
    folder = config.hub_config
    where = f"{config.hub_dataset} at {config.hub_revision}"
    try:
        snapshot = snapshot_download(
            config.hub_dataset,
            repo_type="dataset",
            revision=config.hub_revision,
            allow_patterns=[f"{folder}/{name}{end}" for name in names for end in ("-*.parquet", "/*.parquet")],
        )
    except Exception as error:  # whatever the network, the proxy or the client may raise: none of it is ours
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UserError(f"cannot fetch {where} from the Hub ({reason}). {NOT_REACHED}") from error
    found = shards(Path(snapshot) / folder, names)
    if not found:
        raise UserError(
            f"{where} holds no shards {folder}/{names[0]}-*.parquet, or they are not in the Hub's cache: "
            "check data.hub_config and the split's name."
        )
    return found


def _stream(paths: list[Path], languages: Languages, name: str) -> Iterator[Pair]:
    """Read shards one batch of rows after the other."""
    from datasets import load_dataset  # noqa: PLC0415 (slow to import, and only this source needs it)

    rows = load_dataset("parquet", data_files=[str(path) for path in paths], split="train", streaming=True)
    try:
        for table in rows.with_format("arrow").iter(batch_size=READ_ROWS):
            yield from table_pairs(table, languages, name)
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UserError(f"a shard of {name} is damaged ({reason}): delete it and fetch it again.") from error
